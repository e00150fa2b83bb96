package facadetest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
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
		call.OnLostFields = r.recordInPlaceFields
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

// subs records the sub-handlers of one function. The engine runs them.
type subs struct {
	recorder *recorder
	inner    handlers.Subs
	prefix   string   // the ids of the parent sub-handlers, each with a slash
	ids      []string // the own ids of the declared sub-handlers, to read their records after the run
}

var _ handlers.Subs = (*subs)(nil)

// Declare records the sub-handler and wraps its function. Nested sub-handlers are recorded with the id of this one as a
// prefix.
func (s *subs) Declare(h *handlers.Handler) error {
	sub := &Sub{ID: s.prefix + h.ID, State: kopf.SubPending}
	// The recorder must not change the handler of the engine.
	own := *h
	own.Call = func(ctx context.Context, call *handlers.Invocation) error {
		call.OnLostFields = s.recorder.recordInPlaceFields
		call.Subs = &subs{recorder: s.recorder, inner: call.Subs, prefix: sub.ID + "/"}
		err := h.Call(ctx, call)
		s.recorder.mu.Lock()
		defer s.recorder.mu.Unlock()
		sub.Called, sub.Err = true, err
		return err
	}
	// A sub-handler that the engine rejects is not recorded.
	if err := s.inner.Declare(&own); err != nil {
		return err
	}
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.recorder.subs, s.ids = append(s.recorder.subs, sub), append(s.ids, h.ID)
	return nil
}

// Run runs the sub-handlers and then records their states from the engine's records. A sub-handler without a record
// stays pending.
func (s *subs) Run(ctx context.Context, lifecycle *handlers.Lifecycle) error {
	err := s.inner.Run(ctx, lifecycle)
	for _, id := range s.ids {
		if record, failed := s.inner.RecordOf(id); failed == nil {
			s.recordSubState(id, record)
		}
	}
	return err
}

// RecordOf returns the engine's record.
func (s *subs) RecordOf(id string) (progress.Record, error) { return s.inner.RecordOf(id) }

// recordSubState sets the state of a sub-handler from its record.
func (s *subs) recordSubState(id string, record progress.Record) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	for _, sub := range s.recorder.subs {
		if sub.ID != s.prefix+id {
			continue
		}
		switch {
		case ptr.Deref(record.Failure, false):
			sub.State = kopf.SubFailed
		case ptr.Deref(record.Success, false):
			sub.State = kopf.SubSucceeded
		}
		// The record has errors that this call has not returned, such as the error of an earlier attempt.
		if text := ptr.Deref(record.Message, ""); sub.Err == nil && text != "" {
			sub.Err = errors.New(text)
		}
	}
}

// withLogger returns a context with a logger. Without a logger of the test, lines are discarded: the default logger of
// controller-runtime warns that none was set.
func withLogger(ctx context.Context) context.Context {
	return logr.NewContext(ctx, logr.FromContextOrDiscard(ctx))
}
