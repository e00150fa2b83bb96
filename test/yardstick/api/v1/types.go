// Package v1 has the kind that the yardstick's operators handle, kopfexamples.kopf.dev, as a Go type with the fields
// that its objects have there.
//
// +kubebuilder:object:generate=true
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kind.
var GroupVersion = schema.GroupVersion{Group: "kopf.dev", Version: "v1"}

// AddToScheme registers the kind in the scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &KopfExample{}, &KopfExampleList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// KopfExample is a kind without a status subresource.
type KopfExample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// KopfExampleList is a list of examples.
type KopfExampleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KopfExample `json:"items"`
}

// Spec is the desired state. The yardstick changes Field; the other fields give an object its size.
type Spec struct {
	Field  string   `json:"field,omitempty"`
	Items  []string `json:"items,omitempty"`
	Nested Nested   `json:"nested,omitempty"`
}

// Nested is a part of a spec.
type Nested struct {
	X int64  `json:"x,omitempty"`
	Y string `json:"y,omitempty"`
}

// Status holds the results of handlers by their ids.
type Status struct {
	CreateFn *Created `json:"create_fn,omitempty"`
	UpdateFn *Updated `json:"update_fn,omitempty"`
}

// Created is the result of the create handler.
type Created struct {
	Message string `json:"message,omitempty"`
}

// Updated is the result of the update handler: Seen is the value of the field that it processed.
type Updated struct {
	Seen string `json:"seen,omitempty"`
}
