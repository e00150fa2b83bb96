package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodePoolSpec is the desired state of a pool.
type NodePoolSpec struct {
	// Cluster is the name of the cluster that the nodes belong to.
	Cluster string `json:"cluster"`
	// Version is the version of the nodes.
	Version string `json:"version"`
	// Nodes is the number of nodes.
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`
}

// NodePoolStatus is the observed state of a pool.
type NodePoolStatus struct {
	// Nodes is the number of nodes that have joined.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
}

// NodePool is a set of identical nodes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodePoolSpec `json:"spec"`
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of pools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodePool `json:"items"`
}
