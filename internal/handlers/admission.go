package handlers

import (
	"crypto/x509"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// AdmissionRequest holds one admission request. All handlers that are called for the request share it: they must not
// modify the exported fields.
type AdmissionRequest struct {
	// ID is the id of the handler that the request was sent to; nil means any handler.
	ID *string
	// Type is the type of the webhook configuration that sent the request: "validating" or "mutating"; empty means any.
	Type string
	// Operation is CREATE, UPDATE, DELETE or CONNECT. An unknown operation only matches handlers that accept all
	// operations.
	Operation string
	// Subresource is empty if the request is for the main resource.
	Subresource string
	// Name and Namespace identify the object. Name is empty if the API server has still to generate it.
	Name, Namespace string
	// DryRun is true if the API server will not store the object.
	DryRun bool
	// User is the requesting user in its JSON form.
	User *jsontext.LazyObject
	// Headers and PeerCertificates are those of the HTTP request; they are empty if the request did not come over HTTP.
	Headers          http.Header
	PeerCertificates []*x509.Certificate
	// Object is the new state of the object, and Old is its present state. Object is nil for a deletion, Old for a
	// creation.
	Object, Old *jsontext.LazyObject

	mu           sync.Mutex // guards the fields below: handlers of one request can run concurrently
	warnings     []string
	merge        map[string]any
	sharedValues map[any]any // the values of [AdmissionRequest.SharedValue]
}

// ReviewedObject returns the new state of the object, or its present state if the request is a deletion.
func (a *AdmissionRequest) ReviewedObject() *jsontext.LazyObject {
	if a.Object != nil {
		return a.Object
	}
	return a.Old
}

// AcceptsSubresource reports whether the handler accepts the subresource of the request.
func (h *Handler) AcceptsSubresource(r *AdmissionRequest) bool {
	return h.Subresource == "*" || h.Subresource == r.Subresource
}

// AcceptsRequest reports whether the handler accepts the request by its type, operation, subresource and handler id. It
// does not look at the object: filters do that.
func (h *Handler) AcceptsRequest(r *AdmissionRequest) bool {
	typed := r.Type == "" || (r.Type == "mutating") == h.Mutating
	return typed && h.acceptsOperation(r.Operation) && h.AcceptsSubresource(r) && (r.ID == nil || *r.ID == h.ID)
}

// acceptsOperation reports whether the handler accepts the operation. As in Kopf, a mutating handler gets deletions
// only if it is registered for DELETE and nothing else.
func (h *Handler) acceptsOperation(operation string) bool {
	if h.Mutating && operation == "DELETE" {
		return len(h.Operations) > 0 &&
			!slices.ContainsFunc(h.Operations, func(o string) bool { return o != operation })
	}
	return len(h.Operations) == 0 || slices.Contains(h.Operations, operation)
}

// AddWarning adds a warning that the API server shows to the client. Warnings that are added after the response are
// lost.
func (a *AdmissionRequest) AddWarning(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warnings = append(a.warnings, text)
}

// Warnings returns a copy of the warnings so far, in the order in which they were added.
func (a *AdmissionRequest) Warnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.warnings)
}

// SharedValue returns the value that is stored under the key for all handlers of the request. The first call makes it
// with fresh, which runs under the lock and must not use the Admission.
func (a *AdmissionRequest) SharedValue(key any, fresh func() any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	value, found := a.sharedValues[key]
	if !found {
		value = fresh()
		if a.sharedValues == nil {
			a.sharedValues = map[any]any{}
		}
		a.sharedValues[key] = value
	}
	return value
}

// AddMergePatch adds to the merge-patch of the request. All handlers share the patch, and it is applied before their
// transformations. The copies of the object that handlers see do not include it. Kopf: patch, used as a mapping.
func (a *AdmissionRequest) AddMergePatch(patch map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.merge = mergePatches(a.merge, patch)
}

// MergePatch returns a copy of the merge-patch so far; nil if it is empty.
func (a *AdmissionRequest) MergePatch() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	own, _ := diff.DeepCopy(a.merge).(map[string]any)
	return own
}

// mergePatches combines two merge-patches. The second one wins where both set the same path. Neither argument is
// modified, and the values of the second one are copied, as its caller may change them later.
func mergePatches(first, second map[string]any) map[string]any {
	out := maps.Clone(first)
	for key, value := range second {
		if out == nil {
			out = map[string]any{}
		}
		into, isMapping := value.(map[string]any)
		from, wasMapping := out[key].(map[string]any)
		if isMapping && wasMapping {
			value = mergePatches(from, into)
		}
		out[key] = diff.DeepCopy(value)
	}
	return out
}
