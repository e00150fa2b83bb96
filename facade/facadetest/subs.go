package facadetest

import (
	"context"
	"errors"

	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

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
