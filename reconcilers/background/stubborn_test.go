package background_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// errUnmatched makes the filter of a stubborn handler return false instead of an error.
var errUnmatched = errors.New("unmatched")

// stoppableWorld is a world with a handler that records its stages of stopping, and runs until letGo.
type stoppableWorld struct {
	*world

	unmatched error // of the filter; errUnmatched makes it return false
	over      chan struct{}
}

func newStubbornWorld(
	t *testing.T, settings background.KindSettings, b handlers.BackgroundOptions,
) *stoppableWorld {
	s := newStoppableWorld(t, settings, b, nil)
	s.runPass()
	return s
}

// newStoppableWorld returns a world whose handler runs act; with nil, the handler runs until letGo.
func newStoppableWorld(
	t *testing.T, settings background.KindSettings, b handlers.BackgroundOptions, act handlers.Func,
) *stoppableWorld {
	s := &stoppableWorld{over: make(chan struct{})}
	if act == nil {
		act = s.linger
	}
	h := spawning(&s.world, b, act)
	h.Filters = []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) {
		if errors.Is(s.unmatched, errUnmatched) {
			return false, nil
		}
		return true, s.unmatched
	}}
	s.world = newWorldWith(t, settings, h)
	t.Cleanup(s.letGo)
	return s
}

func (s *stoppableWorld) linger(ctx context.Context, call *handlers.Invocation) error {
	flags := call.Live.(interface{ Flags() background.StopReason }).Flags
	for _, stage := range []struct {
		name    string
		reached <-chan struct{}
	}{{"asked ", call.Live.Stopping()}, {"cancelled ", ctx.Done()}} {
		select {
		case <-stage.reached:
			s.note(stage.name + flags().String())
		case <-s.over:
			return nil
		}
	}
	<-s.over
	return nil
}

// letGo ends the handler. Further calls do nothing.
func (s *stoppableWorld) letGo() {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
}

// stop stops the handler with a reason: in a pass, if the reason concerns the object.
func (s *stoppableWorld) stop(reason background.StopReason) {
	s.t.Helper()
	switch reason {
	case background.Unmatched:
		s.unmatched = errUnmatched
		s.runPass()
	case background.Deleted:
		s.remove()
	default:
		s.StopAll(reason)
	}
}

// remove supervises the object as one that is being deleted.
func (w *world) remove() (holds, busy bool) {
	w.t.Helper()
	body := w.latest()
	holds, busy, err := w.Supervise(w.t.Context(), &cause.Cause{Object: jsontext.NewFromValue(body), Deleting: true})
	if err != nil {
		w.t.Error(err)
	}
	return holds, busy
}

// until sleeps until a time of the journal.
func (w *world) until(at time.Duration) { time.Sleep(at - time.Since(w.began)) }
