package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GuestbookSpec is the desired state of a Guestbook.
type GuestbookSpec struct {
	// Title is shown above the entries.
	// +kubebuilder:validation:MinLength=1
	Title string `json:"title"`
	// Moderators are asked before an entry is shown.
	// +optional
	Moderators []string `json:"moderators,omitempty"`
}

// GuestbookStatus is the observed state of a Guestbook.
type GuestbookStatus struct {
	// Conditions are kept by the project's own reconciler.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Invitation is kept by the handlers of the facade.
	// +optional
	Invitation string `json:"invitation,omitempty"`
}

// Guestbook is the Schema for the guestbooks API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Moderated",type=string,JSONPath=`.status.conditions[?(@.type=="Moderated")].status`
// +kubebuilder:printcolumn:name="Invitation",type=string,JSONPath=`.status.invitation`
type Guestbook struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GuestbookSpec `json:"spec"`
	// +optional
	Status GuestbookStatus `json:"status,omitempty"`
}

// GuestbookList is a list of guestbooks.
//
// +kubebuilder:object:root=true
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Guestbook `json:"items"`
}
