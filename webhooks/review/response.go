package review

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Response is the response to a review. Its API version is that of the request.
type Response struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Response   ObjectVerdict `json:"response"`
}

// ObjectVerdict is the decision about the object.
type ObjectVerdict struct {
	// UID is that of the request. The API server compares them.
	UID     types.UID `json:"uid"`
	Allowed bool      `json:"allowed"`
	// Warnings are shown to the user who has made the request.
	Warnings []string `json:"warnings,omitempty"`
	// Patch is a list of JSON patch operations. JSON encodes it in base64.
	Patch     []byte `json:"patch,omitempty"`
	PatchType string `json:"patchType,omitempty"`
	// Status is the reason for a denial; nil if the request is allowed.
	Status *Status `json:"status,omitempty"`
}

// Status is the reason for a denial.
type Status struct {
	Message string `json:"message"`
	Code    int32  `json:"code"`
	// Reason and Details come from errors that have them, such as those of field validation.
	Reason  metav1.StatusReason   `json:"reason,omitempty"`
	Details *metav1.StatusDetails `json:"details,omitempty"`
}

// EncodeJSON returns the body of the HTTP response.
func (r Response) EncodeJSON() ([]byte, error) { return json.Marshal(r) }
