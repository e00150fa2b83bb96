// Package v1 contains the Go types of websites.example.org/v1.
//
// +kubebuilder:object:generate=true
// +groupName=websites.example.org
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WebsiteSpec is the desired state.
type WebsiteSpec struct {
	// Title is the heading of the page.
	// +kubebuilder:validation:MinLength=1
	Title string `json:"title"`
}

// WebsiteStatus is the actual state.
type WebsiteStatus struct {
	// Page is the name of the ConfigMap with the page.
	// +optional
	Page string `json:"page,omitempty"`
	// ObservedGeneration is the generation that the conditions belong to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions report progress and failures.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Website is a web page with a title.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Page",type=string,JSONPath=`.status.page`
type Website struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WebsiteSpec `json:"spec"`
	// +optional
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteList is a list of websites.
//
// +kubebuilder:object:root=true
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}

// AddToScheme adds the types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "websites.example.org", Version: "v1"}
	scheme.AddKnownTypes(version, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}
