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

// recorder records one call of a handler. It takes the places where the engine reports to the rest of an operator: it
// posts events, tracks the running attempt, and wraps the functions.
type recorder struct {
	mu            sync.Mutex
	objectUID     string // the uid of the handled object
	called        bool
	attempt       *execution.Attempt
	events        []Posted
	subs          []*Sub
	inPlaceFields []string
}

var (
	_ handlers.EventPoster = (*recorder)(nil)
	_ execution.Slot       = (*recorder)(nil)
)

// Post records a Kubernetes event. Its object is only noted if it is not the handled one.
func (r *recorder) Post(_ context.Context, body map[string]any, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	event := Posted{Type: kind, Reason: reason, Message: message}
	if object := (&unstructured.Unstructured{Object: body}); string(object.GetUID()) != r.objectUID {
		event.About = object.GetKind() + " " + qualifiedName(object.GetNamespace(), object.GetName())
	}
	r.events = append(r.events, event)
}

// Takes reports whether events of the level are posted. It uses the default level of operators.
func (r *recorder) Takes(level slog.Level) bool { return level >= slog.LevelInfo }

// Enter stores the attempt, whose outcome is read after the call.
func (r *recorder) Enter(a *execution.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt = a
}

// Leave does nothing: the outcome stays in the attempt.
func (r *recorder) Leave(*execution.Attempt) {}

// wrapHandler returns a copy of the handler whose function is recorded. The engine's own handler stays unchanged.
func (r *recorder) wrapHandler(h *handlers.Handler) *handlers.Handler {
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

// recordInPlaceFields records fields that were changed in place.
func (r *recorder) recordInPlaceFields(fields []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inPlaceFields = append(r.inPlaceFields, fields...)
}

// copyRecorded returns copies of everything recorded so far: goroutines of the handler can still record events after
// its return.
func (r *recorder) copyRecorded() (called bool, attempt *execution.Attempt, posted []Posted, all []Sub,
	inPlace []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.subs {
		all = append(all, *one)
	}
	return r.called, r.attempt, slices.Clone(r.events), all,
		slices.Compact(slices.Sorted(slices.Values(r.inPlaceFields)))
}
