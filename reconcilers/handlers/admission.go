package handlers

import (
	"crypto/x509"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Admission is one request for admission. All handlers that are called for it share it: they must not modify what is in
// it.
type Admission struct {
	// ID is the handler that the request was sent to; nil is any.
	ID *string
	// Type is of the configuration that sent the request: "validating" or "mutating"; empty is any.
	Type string
	// Operation is CREATE, UPDATE, DELETE or CONNECT; one that is not known is none of those that a handler is for.
	Operation string
	// Subresource is empty for the object as a whole.
	Subresource string
	// Name and Namespace are those of the object; a name that is still to be generated is empty.
	Name, Namespace string
	// DryRun is true if nothing will be stored.
	DryRun bool
	// User is who asks, as JSON has it.
	User *jsontext.Object
	// Headers and PeerCertificates are those of the HTTP request, as far as there was one.
	Headers          http.Header
	PeerCertificates []*x509.Certificate
	// Object is the object as it is to be, and Old as it is; nil where there is none.
	Object, Old *jsontext.Object

	mu       sync.Mutex
	warnings []string
	merge    map[string]any
	kept     map[any]any
}

// Body is the object that handlers are asked about: as it is to be or, where it is to be no more, as it is.
func (a *Admission) Body() *jsontext.Object {
	if a.Object != nil {
		return a.Object
	}
	return a.Old
}

// Covers tells whether an admitting handler is for the subresource of the request at all.
func (h *Handler) Covers(r *Admission) bool {
	return h.Subresource == "*" || h.Subresource == r.Subresource
}

// Answers tells whether the handler is for the request, the object aside.
func (h *Handler) Answers(r *Admission) bool {
	typed := r.Type == "" || (r.Type == "mutating") == h.Mutating
	return typed && h.operates(r.Operation) && h.Covers(r) && (r.ID == nil || *r.ID == h.ID)
}

func (h *Handler) operates(operation string) bool {
	if h.Mutating && operation == "DELETE" {
		return len(h.Operations) > 0 &&
			!slices.ContainsFunc(h.Operations, func(o string) bool { return o != operation })
	}
	return len(h.Operations) == 0 || slices.Contains(h.Operations, operation)
}

// Warn adds a warning, which whoever made the request is shown. Those that come after the response are lost.
func (a *Admission) Warn(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warnings = append(a.warnings, text)
}

// Warnings are those so far, in their order.
func (a *Admission) Warnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.warnings)
}

// Keep gives what is kept for the request under the key, for all of its handlers; it is made at the first time.
func (a *Admission) Keep(key any, fresh func() any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	value, found := a.kept[key]
	if !found {
		value = fresh()
		if a.kept == nil {
			a.kept = map[any]any{}
		}
		a.kept[key] = value
	}
	return value
}

// Merge adds to the merge-patch of the request, which all handlers share, and which is applied before what they
// remember. It is shown to nobody but the API server. Kopf: patch, used as a mapping.
func (a *Admission) Merge(patch map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.merge = merged(a.merge, patch)
}

// Merged is the merge-patch so far; nil is none. It is the caller's own.
func (a *Admission) Merged() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	own, _ := diff.Copy(a.merge).(map[string]any)
	return own
}

// merged is the merge-patch that says what both say; where they differ, the second one counts.
func merged(first, second map[string]any) map[string]any {
	out := maps.Clone(first)
	for key, value := range second {
		if out == nil {
			out = map[string]any{}
		}
		into, isMapping := value.(map[string]any)
		from, wasMapping := out[key].(map[string]any)
		if isMapping && wasMapping {
			value = merged(from, into)
		}
		out[key] = diff.Copy(value)
	}
	return out
}
