package facadetest

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// recorder sees one call of a handler from where the engine ends: it posts events, is the place of the attempt, and
// stands around the functions.
type recorder struct {
	mu      sync.Mutex
	about   string // the uid of the handled object
	called  bool
	attempt *execution.Attempt
	events  []Posted
	subs    []*Sub
	inPlace []string
}

var (
	_ handlers.Poster = (*recorder)(nil)
	_ execution.Place = (*recorder)(nil)
)

// Post records an event.
func (r *recorder) Post(_ context.Context, body map[string]any, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	event := Posted{Type: kind, Reason: reason, Message: message}
	if object := (&unstructured.Unstructured{Object: body}); string(object.GetUID()) != r.about {
		event.About = object.GetKind() + " " + nameOf(object.GetNamespace(), object.GetName())
	}
	r.events = append(r.events, event)
}

// Takes is true from the level on that operators post by default.
func (r *recorder) Takes(level slog.Level) bool { return level >= slog.LevelInfo }

// Enter notes the attempt.
func (r *recorder) Enter(a *execution.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt = a
}

// Leave does nothing: the outcome stays in the attempt.
func (r *recorder) Leave(*execution.Attempt) {}

// watch stands around the function of a handler.
func (r *recorder) watch(h *handlers.Handler) *handlers.Handler {
	own := *h
	own.Call = func(ctx context.Context, call *handlers.Invocation) error {
		r.mu.Lock()
		r.called = true
		r.mu.Unlock()
		if call.Subs != nil {
			call.Subs = &subs{recorder: r, inner: call.Subs}
		}
		return h.Call(ctx, call)
	}
	return &own
}

// lost notes fields that were changed in place.
func (r *recorder) lost(fields []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inPlace = append(r.inPlace, fields...)
}

// seen is all that was recorded so far.
func (r *recorder) seen() (called bool, attempt *execution.Attempt, posted []Posted, all []Sub, inPlace []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.subs {
		all = append(all, *one)
	}
	return r.called, r.attempt, slices.Clone(r.events), all, slices.Compact(slices.Sorted(slices.Values(r.inPlace)))
}
