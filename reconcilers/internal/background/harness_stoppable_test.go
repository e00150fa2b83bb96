package background_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

// errUnmatched makes the filter of a stubborn handler return false instead of an error.
var errUnmatched = errors.New("unmatched")

// stoppableHarness is a world with a handler that records its stages of stopping, and runs until letGo.
type stoppableHarness struct {
	*harness

	filterErr error // of the filter; errUnmatched makes it return false
	done      chan struct{}
}

func newStubbornHarness(
	t *testing.T, settings background.KindSettings, b handlers.BackgroundOptions,
) *stoppableHarness {
	s := newStoppableHarness(t, settings, b, nil)
	s.runPass()
	return s
}

// newStoppableHarness returns a world whose handler runs act; with nil, the handler runs until letGo.
func newStoppableHarness(
	t *testing.T, settings background.KindSettings, b handlers.BackgroundOptions, act handlers.Func,
) *stoppableHarness {
	s := &stoppableHarness{done: make(chan struct{})}
	if act == nil {
		act = s.linger
	}
	h := backgroundHandler(&s.harness, b, act)
	h.Filters = []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) {
		if errors.Is(s.filterErr, errUnmatched) {
			return false, nil
		}
		return true, s.filterErr
	}}
	s.harness = newHarnessWith(t, settings, h)
	t.Cleanup(s.letGo)
	return s
}

func (s *stoppableHarness) linger(ctx context.Context, call *handlers.Invocation) error {
	flags := call.LiveObject.(interface{ Flags() background.StopReason }).Flags
	for _, stage := range []struct {
		name    string
		reached <-chan struct{}
	}{{"asked ", call.LiveObject.Stopping()}, {"cancelled ", ctx.Done()}} {
		select {
		case <-stage.reached:
			s.note(stage.name + flags().String())
		case <-s.done:
			return nil
		}
	}
	<-s.done
	return nil
}

// letGo ends the handler. Further calls do nothing.
func (s *stoppableHarness) letGo() {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}

// stop stops the handler with a reason: in a pass, if the reason concerns the object.
func (s *stoppableHarness) stop(reason background.StopReason) {
	s.t.Helper()
	switch reason {
	case background.Unmatched:
		s.filterErr = errUnmatched
		s.runPass()
	case background.Deleted:
		s.remove()
	default:
		s.StopAll(reason)
	}
}

// remove supervises the object as one that is being deleted.
func (w *harness) remove() (holds, busy bool) {
	w.t.Helper()
	body := w.latest()
	holds, busy, err := w.Supervise(w.t.Context(), &cause.Cause{Object: jsontext.NewFromValue(body), Deleting: true})
	if err != nil {
		w.t.Error(err)
	}
	return holds, busy
}

// until sleeps until a time of the journal.
func (w *harness) until(at time.Duration) { time.Sleep(at - time.Since(w.startTime)) }
