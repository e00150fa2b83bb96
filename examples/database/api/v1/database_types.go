package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DatabaseSpec is the desired state of a database.
type DatabaseSpec struct {
	// Version is the version of the software, such as "16".
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
	// Size is the storage, in GiB.
	// +kubebuilder:validation:Minimum=1
	Size int32 `json:"size"`
	// Replicas is the number of servers that follow the first one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Users are the users who may connect, each with a role of that name.
	// +kubebuilder:validation:items:Pattern=`^[a-z][a-z0-9]*$`
	// +listType=set
	// +optional
	Users []string `json:"users,omitempty"`
}

// Phase is how far a database is.
type Phase string

// The phases of a database. The phase is empty before the database is provisioned.
const (
	// PhaseServing is a database that takes connections.
	PhaseServing Phase = "Serving"
	// PhaseUpgrading is a database that does not take connections, because its version changes.
	PhaseUpgrading Phase = "Upgrading"
)

// DatabaseStatus is the observed state of a database.
type DatabaseStatus struct {
	// Phase is the phase of the database.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Host is the address of the database.
	// +optional
	Host string `json:"host,omitempty"`
	// Version is the version that the servers run.
	// +optional
	Version string `json:"version,omitempty"`
	// Size is its storage, in GiB.
	// +optional
	Size int32 `json:"size,omitempty"`
	// Users are the users who can connect.
	// +optional
	Users []string `json:"users,omitempty"`
	// LastBackup is the name of the last backup.
	// +optional
	LastBackup string `json:"lastBackup,omitempty"`
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions has Ready; Reconciling and Stalled while they apply; one condition for each step of the last upgrade;
	// and InSync for the replicas.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Database is a database on servers of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.host`
type Database struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DatabaseSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseList is a list of databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}
