package review

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
)

// Response is the answer to a review, to be encoded in JSON: its version and kind are those of the request.
type Response struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Response   Verdict `json:"response"`
}

// Verdict is what is said of the object.
type Verdict struct {
	UID     types.UID `json:"uid"`
	Allowed bool      `json:"allowed"`
	// Warnings are shown to the user that has made the request.
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
}

// JSON is the body of the HTTP response.
func (r Response) JSON() ([]byte, error) { return json.Marshal(r) }
