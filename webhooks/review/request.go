package review

import (
	"crypto/x509"
	"net/http"
)

// EndpointRequest is an admission review as an endpoint has received it.
type EndpointRequest struct {
	// Body is the AdmissionReview in JSON, of v1 or v1beta1.
	Body []byte
	// HandlerID is the id of the endpoint's handler. An empty id matches no handler, and nil matches all. Kopf:
	// webhook.
	HandlerID *string
	// Type is the type of the endpoint's handlers: "validating" or "mutating"; empty means both.
	Type string
	// ExceedsMemory is true if there is not enough memory to decode the objects. Only reviews that call no handler are
	// answered then, such as those of the operator's own finalizer.
	ExceedsMemory bool
	// Headers are the headers of the HTTP request; nil means none.
	Headers http.Header
	// PeerCertificates are the certificates of the client, its own first; nil means none.
	PeerCertificates []*x509.Certificate
}
