package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Engine is the database software.
// +kubebuilder:validation:Enum=postgres;mysql
type Engine string

// The supported engines.
const (
	Postgres Engine = "postgres"
	MySQL    Engine = "mysql"
)

// DatabaseSpec is the desired state of a database.
type DatabaseSpec struct {
	// Engine is the software. It cannot change, because the engines do not read the data of each other.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the engine cannot change"
	Engine Engine `json:"engine"`
	// Version is the version of the engine, such as "17.6".
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*\.[0-9]+(\.[0-9]+)?$`
	Version string `json:"version"`
	// Size is the storage for the data, such as "10Gi".
	Size resource.Quantity `json:"size"`
	// BackupSchedule is the time of the backups in the cron format. Without it, the database has no scheduled backups.
	// +optional
	BackupSchedule string `json:"backupSchedule,omitempty"`
}

// DatabaseStatus is the observed state of a database.
type DatabaseStatus struct {
	// Version is the version that the server has reached.
	// +optional
	Version string `json:"version,omitempty"`
	// Endpoint is the host and port of the server in the cluster.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// ObservedGeneration is the generation that the handlers have seen.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions has Ready, the outcome of the last change, and Available, the state of the server.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Database is a database server in the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=db
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.spec.engine`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Backups",type=string,JSONPath=`.spec.backupSchedule`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
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
