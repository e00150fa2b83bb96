package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
)

// TestEnds shows that the time that running handlers get depends on why the controllers end.
func TestEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	tests := map[string]struct {
		reason       string
		cause        error // nil is the exit
		meanwhile    func(s *kindFixture, exit, abandon func())
		wantDuration time.Duration
	}{
		"Exit": {"an exit gives running handlers two seconds", nil, nil, 2 * time.Second},
		"Restarting": {"a restart ends at once, as other controllers wait for the objects",
			controller.ErrRestarting, nil, 0},
		"Removed": {"a removed kind ends at once, as its objects are gone", controller.ErrRemoved, nil, 0},
		"Paused": {"a pause gives running handlers more time than an exit",
			execution.ErrPaused, nil, 30 * time.Second},
		"PausedThenExit": {
			"an exit during a pause shortens the time of the pause",
			execution.ErrPaused, func(_ *kindFixture, exit, _ func()) {
				time.Sleep(10 * time.Second)
				exit()
			}, 12 * time.Second,
		},
		"Abandoned": {
			"an abandoned operator does not wait for its handlers any longer", nil,
			func(_ *kindFixture, _, abandon func()) {
				time.Sleep(time.Second)
				abandon()
			}, time.Second,
		},
		"NoPermission": {
			"without permission to write, a pause ends at once", execution.ErrPaused,
			func(s *kindFixture, _, _ func()) {}, 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				s := newKindFixture(t)
				exiting, abandoned := make(chan struct{}), make(chan struct{})
				s.deps.Exiting, s.deps.Abandoned = exiting, abandoned
				if name == "NoPermission" {
					s.deps.Permission = func(string, sharding.Range) context.Context { return ended }
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
				if lasted != tc.wantDuration {
					t.Errorf("the handler went on for %s, want %s", lasted, tc.wantDuration)
				}
				if failures := s.linesWith("Controller failed"); len(failures) > 0 {
					t.Errorf("the end is logged as a failure: %q", failures)
				}
			})
		})
	}
}

// TestEndsInTheBackground shows that a daemon learns why it has to stop. A pause does not end the operator.
func TestEndsInTheBackground(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		cause, want error
		exits       bool // a second later
	}{
		"Exit": {"an exit stops a daemon with ErrExiting", nil, execution.ErrExiting, false},
		"Restarting": {"a restart stops a daemon with ErrPaused, as another controller continues",
			controller.ErrRestarting, execution.ErrPaused, false},
		"Removed": {"a removed kind stops a daemon with ErrDeleted",
			controller.ErrRemoved, execution.ErrDeleted, false},
		"Paused": {"a pause stops a daemon with ErrPaused", execution.ErrPaused, execution.ErrPaused, false},
		"PausedThenExit": {"an exit during a pause changes the reason to ErrExiting",
			execution.ErrPaused, execution.ErrExiting, true},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			synctest.Test(t, func(t *testing.T) {
				s := newKindFixture(t)
				exiting := make(chan struct{})
				s.deps.Exiting = exiting
				var told error
				s.addHandler(&handlers.Handler{
					ID: "d", Family: handlers.Background,
					Background: &handlers.BackgroundOptions{Daemon: true, CancelTimeout: time.Hour},
				}, func(c *handlers.Invocation) error {
					<-c.LiveObject.Stopping()
					time.Sleep(3 * time.Second) // the reason may change until the end
					told = c.LiveObject.StopReason()
					return nil
				})
				s.create("a", "x")
				stop := s.run()
				s.requireCalls("the daemon started", "d x")
				if c.exits {
					go func() {
						time.Sleep(time.Second)
						close(exiting)
					}()
				}
				stop(c.cause)
				if !errors.Is(told, c.want) {
					t.Errorf("the stop reason is %v, want %v", told, c.want)
				}
			})
		})
	}
}
