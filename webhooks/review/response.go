package review

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Response is the answer to a review, to be encoded in JSON: its version is that of the request.
type Response struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Response   Verdict `json:"response"`
}

// Verdict is what is said of the object.
type Verdict struct {
	UID     types.UID `json:"uid"`
	Allowed bool      `json:"allowed"`
	// Warnings are shown to whoever has made the request.
	Warnings []string `json:"warnings,omitempty"`
	// Patch is a list of JSON-patch operations; JSON has it in base64.
	Patch     []byte `json:"patch,omitempty"`
	PatchType string `json:"patchType,omitempty"`
	// Status is why the request is denied; nil if it is not.
	Status *Status `json:"status,omitempty"`
}

// Status is why a request is denied.
type Status struct {
	Message string `json:"message"`
	Code    int32  `json:"code"`
	// Reason and Details are those of an error that has them, such as one of field validation.
	Reason  metav1.StatusReason   `json:"reason,omitempty"`
	Details *metav1.StatusDetails `json:"details,omitempty"`
}

// JSON is the body of the HTTP response.
func (r Response) JSON() ([]byte, error) { return json.Marshal(r) }
