package review

import (
	"crypto/x509"
	"net/http"
)

// Request is an admission review as it came to an endpoint.
type Request struct {
	// Body is the AdmissionReview in JSON, of v1 or v1beta1.
	Body []byte
	// Hint is the id of the handler that the endpoint is for; an empty one is that of no handler, and nil is any.
	Hint *string
	// Type is of the configuration that the endpoint is for: "validating" or "mutating"; empty is any.
	Type string
	// TooHeavy is true if there is not enough memory to decode the objects: only a review that calls no handler is
	// answered, such as that of the operator's own finalizer.
	TooHeavy bool
	// Headers are those of the HTTP request; nil is none.
	Headers http.Header
	// PeerCertificates are those of the client, its own first; nil is none.
	PeerCertificates []*x509.Certificate
}
