package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSpec is the desired state of a cluster.
type ClusterSpec struct {
	// Version is the version of Kubernetes, such as "1.35".
	// +kubebuilder:validation:Pattern=`^1\.[0-9]+$`
	Version string `json:"version"`
	// Nodes is the size of the cluster's own pool; there may be others.
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`
	// Network is the network of the cluster.
	Network NetworkSpec `json:"network"`
	// Addons are the versions of the add-ons, by name.
	// +optional
	Addons map[string]string `json:"addons,omitempty"`
}

// NetworkSpec is the wanted network.
type NetworkSpec struct {
	// CIDR is the range of addresses. It never changes.
	CIDR string `json:"cidr"`
	// AllowedFrom are the ranges that may reach the API server; empty allows all.
	// +optional
	AllowedFrom []string `json:"allowedFrom,omitempty"`
}

// Phase is how far a cluster is.
type Phase string

const (
	// PhaseReady is a cluster with all its nodes.
	PhaseReady Phase = "Ready"
	// PhaseDegraded is a cluster that waits for nodes.
	PhaseDegraded Phase = "Degraded"
)

// ClusterStatus is the observed state of a cluster. Each handler has its own field; some fields are results of
// handlers.
type ClusterStatus struct {
	// Phase is the phase of the cluster; empty before the first check of its health.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Version is the version of all nodes and of the control plane.
	// +optional
	Version string `json:"version,omitempty"`
	// Addons are the installed versions, by name.
	// +optional
	Addons map[string]string `json:"addons,omitempty"`
	// Incidents is the number of reported incidents.
	// +optional
	Incidents int32 `json:"incidents,omitempty"`
	// Network is the result of the handler "network".
	// +optional
	Network *Network `json:"network,omitempty"`
	// ControlPlane is the result of the handler "controlPlane".
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// Health is the result of the timer "health".
	// +optional
	Health *Health `json:"health,omitempty"`
	// Backup is the result of the timer "backup".
	// +optional
	Backup *Backup `json:"backup,omitempty"`
}

// Network is an existing network.
type Network struct {
	ID   string `json:"id"`
	CIDR string `json:"cidr"`
}

// ControlPlane is an existing control plane.
type ControlPlane struct {
	Endpoint string `json:"endpoint"`
}

// Health is the number of all nodes, and of those that are ready.
type Health struct {
	Nodes int32 `json:"nodes"`
	Ready int32 `json:"ready"`
}

// Backup is the last backup.
type Backup struct {
	Snapshot string `json:"snapshot"`
	Version  string `json:"version"`
}

// Cluster is a Kubernetes cluster on machines of a cloud.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.health.ready`
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSpec `json:"spec"`
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cluster `json:"items"`
}
