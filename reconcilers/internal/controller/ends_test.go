package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
)

// How long handlers that are running may go on depends on why the controllers end.
func TestEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	tests := map[string]struct {
		reason    string
		cause     error // nil is the exit
		meanwhile func(s *site, exit, abandon func())
		takes     time.Duration
	}{
		"Exit":       {"what is about to finish may do so", nil, nil, 2 * time.Second},
		"Restarting": {"other controllers wait for the objects", controller.ErrRestarting, nil, 0},
		"Removed":    {"there are no objects any more", controller.ErrRemoved, nil, 0},
		"Paused":     {"a pause has more time than an exit", execution.ErrPaused, nil, 30 * time.Second},
		"PausedThenExit": {
			"the exit does not wait for the pause", execution.ErrPaused, func(_ *site, exit, _ func()) {
				time.Sleep(10 * time.Second)
				exit()
			}, 12 * time.Second,
		},
		"Abandoned": {
			"nobody waits for the end of handlers any more", nil, func(_ *site, _, abandon func()) {
				time.Sleep(time.Second)
				abandon()
			}, time.Second,
		},
		"NoPermission": {
			"nothing of it could be written", execution.ErrPaused, func(s *site, _, _ func()) {}, 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				exiting, abandoned := make(chan struct{}), make(chan struct{})
				s.deps.Exiting, s.deps.Abandoned = exiting, abandoned
				if name == "NoPermission" {
					s.deps.Permission = func(string) context.Context { return ended }
				}
				var lasted time.Duration
				began := make(chan time.Time, 1)
				s.handlers = append(s.handlers, adapters.New(&handlers.Handler{
					ID: "c", Reason: cause.Create, Call: func(ctx context.Context, _ *handlers.Invocation) error {
						<-ctx.Done()
						lasted = time.Since(<-began)
						return ctx.Err()
					},
				}, nil))
				s.create("a", "x")
				stop := s.run()
				began <- time.Now()
				if tc.meanwhile != nil {
					go tc.meanwhile(s, func() { close(exiting) }, func() { close(abandoned) })
				}
				stop(tc.cause)
				if lasted != tc.takes {
					t.Errorf("the handler went on for %s, want %s", lasted, tc.takes)
				}
				if failures := s.lines("Controller failed"); len(failures) > 0 {
					t.Errorf("an end is no failure: %q", failures)
				}
			})
		})
	}
}

// Handlers in the background are told why they have to end: a pause is none for the operator as a whole.
func TestEndsInTheBackground(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		cause, want error
		exits       bool // a second later
	}{
		"Exit":           {"the operator ends", nil, execution.ErrExiting, false},
		"Restarting":     {"others go on with the object", controller.ErrRestarting, execution.ErrPaused, false},
		"Removed":        {"its object went with the kind", controller.ErrRemoved, execution.ErrDeleted, false},
		"Paused":         {"it goes on later", execution.ErrPaused, execution.ErrPaused, false},
		"PausedThenExit": {"it does not go on", execution.ErrPaused, execution.ErrExiting, true},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				exiting := make(chan struct{})
				s.deps.Exiting = exiting
				var told error
				s.handle(&handlers.Handler{
					ID: "d", Family: handlers.Spawning,
					Background: &handlers.Background{Daemon: true, CancelTimeout: time.Hour},
				}, func(c *handlers.Invocation) error {
					<-c.Live.Stopping()
					time.Sleep(3 * time.Second) // it is told at the end, too
					told = c.Live.StopReason()
					return nil
				})
				s.create("a", "x")
				stop := s.run()
				s.want("it runs", "d x")
				if c.exits {
					go func() {
						time.Sleep(time.Second)
						close(exiting)
					}()
				}
				stop(c.cause)
				if !errors.Is(told, c.want) {
					t.Errorf("told %v, want %v", told, c.want)
				}
			})
		})
	}
}
