// Package v1 contains the Go types of backups.example.org/v1.
//
// +kubebuilder:object:generate=true
// +groupName=backups.example.org
package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupSpec is the desired state. Users write it, and handlers read it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.full) || self.engine != 'files'",message="full needs a database"
type BackupSpec struct {
	// Engine selects the program. It cannot be changed.
	// +kubebuilder:validation:Enum=postgres;mysql;files
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the engine cannot be changed"
	Engine string `json:"engine"`
	// Source is the name of the object that is backed up, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	Source string `json:"source"`
	// Interval is the time between two backups.
	// +kubebuilder:default="24h"
	// +optional
	Interval metav1.Duration `json:"interval,omitempty"`
	// Keep is the number of backups that are kept. It is a pointer, because 0 differs from nothing.
	// +kubebuilder:default=7
	// +kubebuilder:validation:Minimum=0
	// +optional
	Keep *int32 `json:"keep,omitempty"`
	// MaxSize limits all backups together, if it is set.
	// +optional
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`
	// Full makes each backup complete.
	// +optional
	Full *bool `json:"full,omitempty"`
	// Targets are the places of copies.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Targets []Target `json:"targets,omitempty"`
	// LoginSecret is the name of a Secret with the password.
	// +optional
	LoginSecret string `json:"loginSecret,omitempty"`
}

// Target is the place of a copy.
type Target struct {
	// Name identifies the target in the list.
	Name string `json:"name"`
	// URL is the address.
	// +kubebuilder:validation:Pattern=`^https://`
	URL string `json:"url"`
}

// BackupStatus is the actual state. Handlers write it.
type BackupStatus struct {
	// LastBackup is the name of the last backup.
	// +optional
	LastBackup string `json:"lastBackup,omitempty"`
	// LastTime is the time of its end.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// ObservedGeneration is the generation that the conditions belong to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions report progress and failures.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Backup describes the backups of one object.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=bak,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastTime`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Engine",type=string,priority=1,JSONPath=`.spec.engine`
type Backup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BackupSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status BackupStatus `json:"status,omitempty"`
}

// BackupList is a list of backups.
//
// +kubebuilder:object:root=true
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Backup `json:"items"`
}
