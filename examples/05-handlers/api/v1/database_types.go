package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DatabaseSpec is the desired state of a database.
type DatabaseSpec struct {
	// Owner is the team that the database belongs to.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Size is the storage, in GiB.
	// +kubebuilder:validation:Minimum=1
	Size int32 `json:"size"`
}

// Phase is how far a database is.
type Phase string

// PhaseReady is a database that can be used.
const PhaseReady Phase = "Ready"

// DatabaseStatus is the observed state of a database.
type DatabaseStatus struct {
	// Phase is how far the database is; empty before it is provisioned.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Host is where the database can be reached.
	// +optional
	Host string `json:"host,omitempty"`
	// Size is the storage that was provisioned, in GiB.
	// +optional
	Size int32 `json:"size,omitempty"`
}

// Database is a database that another system runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.host`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.status.size`
type Database struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DatabaseSpec `json:"spec"`
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
