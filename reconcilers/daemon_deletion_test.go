package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestDeletionsWaitForDaemons shows that deletion handlers are called once, after the daemons have ended (deviation
// D-delete-waits); as in Kopf, they are called at once with KopfDeletions. The object waits for the daemons in both
// cases.
func TestDeletionsWaitForDaemons(t *testing.T) {
	stubborn := func(ctx context.Context, _ *handlers.Invocation) error {
		<-ctx.Done()
		time.Sleep(30 * time.Second)
		return nil
	}
	tests := map[string]struct {
		reason     string
		background handlers.BackgroundOptions
		meanwhile  func(p directClient, again func())
		want, kopf string
	}{
		"Lingering": {
			"a daemon without a timeout is waited for until it ends", handlers.BackgroundOptions{}, nil,
			"40s delete; 40s gone", "10s delete; 40s gone",
		},
		"Abandoned": {
			"a daemon with a timeout is waited for until it is abandoned",
			handlers.BackgroundOptions{CancelTimeout: 15 * time.Second}, nil,
			"25s delete; 25s gone", "10s delete; 25s gone",
		},
		"Edited": {
			"an edit during the wait changes nothing", handlers.BackgroundOptions{},
			func(p directClient, _ func()) { p.label("ConfigMap", "c", "x") },
			"40s delete; 40s gone", "10s delete; 40s gone",
		},
		"Restarted": {
			"a restarted operator does not wait for daemons of the former process",
			handlers.BackgroundOptions{CancelTimeout: time.Second},
			func(_ directClient, again func()) { again() }, "20s delete; 20s gone", "10s delete; 20s gone",
		},
	}
	for name, tc := range tests {
		for _, kopf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, kopf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server, j := memapi.New(), &journal{}
					p := newDirectClient(t, server)
					p.create("ConfigMap", "c")
					j.startTime = time.Now()
					start := func() (stop func()) {
						return operateAll(
							t,
							server,
							reconcilers.Options{Settings: reconcilers.Settings{KopfDeletions: kopf}},
							registrationFor(t, "configmaps", daemon("d", tc.background, stubborn)),
							registrationFor(t, "configmaps", &handlers.Handler{ID: "del", Reason: cause.Delete,
								Call: func(context.Context, *handlers.Invocation) error {
									j.add("delete")
									return nil
								}}),
						)
					}
					stop := start()
					time.Sleep(10 * time.Second)
					p.remove("ConfigMap", "c")
					if tc.background.CancelTimeout == time.Second {
						time.Sleep(500 * time.Millisecond)
					} else {
						time.Sleep(10 * time.Second)
					}
					if tc.meanwhile != nil {
						tc.meanwhile(p, func() {
							stop()
							time.Sleep(time.Until(j.startTime.Add(20 * time.Second)))
							stop = start()
						})
					}
					for range 300 {
						if p.count("ConfigMap") == 0 {
							j.add("gone")
							break
						}
						time.Sleep(100 * time.Millisecond)
					}
					stop()
					time.Sleep(time.Minute)
					want := map[bool]string{false: tc.want, true: tc.kopf}[kopf]
					if d := cmp.Diff(want, j.String()); d != "" {
						t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
					}
				})
			})
		}
	}
}

// TestDeletionsWaitForAMinute shows that deletion handlers wait for daemons and ticks until they end or are abandoned;
// without a cancellation timeout, for a minute (deviation D-delete-waits).
func TestDeletionsWaitForAMinute(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	lasting := func(d time.Duration) handlers.Func {
		return func(context.Context, *handlers.Invocation) error { time.Sleep(d); return nil }
	}
	for name, tc := range map[string]struct {
		reason string
		own    *handlers.Handler
		gaveUp bool
		want   string
	}{
		"Obedient": {"a daemon that ends after the stop signal is not waited for",
			daemon("d", handlers.BackgroundOptions{}, untilStopped), false,
			"10s delete; 10s gone"},
		"Stubborn": {"after a minute, the deletion handler is called, but the object still waits",
			daemon("d", handlers.BackgroundOptions{}, lasting(5*time.Minute)), true, "1m10s delete; 5m0s gone"},
		"Backoff": {"the minute begins after the backoff of the daemon",
			daemon("d", handlers.BackgroundOptions{CancelBackoff: 30 * time.Second}, lasting(5*time.Minute)), true,
			"1m40s delete; 5m0s gone"},
		"Timeout": {"a cancellation timeout replaces the minute",
			daemon("d", handlers.BackgroundOptions{CancelTimeout: 2 * time.Minute}, lasting(5*time.Minute)), false,
			"2m10s delete; 2m10s gone"},
		"Tick": {"a running tick is waited for until it ends", timer("d", time.Minute, lasting(30*time.Second)), false,
			"30s delete; 30s gone"},
		"LongTick": {"a running tick is waited for up to a minute", timer("d", time.Minute, lasting(5*time.Minute)),
			true,
			"1m10s delete; 5m0s gone"},
		"Idle": {"a timer without a running tick is not waited for", timer("d", time.Minute, succeed), false,
			"10s delete; 10s gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j, log := memapi.New(), &journal{}, &journal{}
				p := newDirectClient(t, server)
				j.startTime = time.Now()
				lines := funcr.New(func(_, line string) { log.add(line) }, funcr.Options{})
				stop := operateLogged(t, server, lines, reconcilers.Options{}, registrationFor(t, "configmaps", tc.own),
					registrationFor(t, "configmaps", &handlers.Handler{ID: "del", Reason: cause.Delete,
						Call: func(context.Context, *handlers.Invocation) error { j.add("delete"); return nil }}))
				p.create("ConfigMap", "c")
				time.Sleep(10 * time.Second)
				p.remove("ConfigMap", "c")
				for range 3500 {
					if p.count("ConfigMap") == 0 {
						j.add("gone")
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				stop()
				time.Sleep(5 * time.Minute) // for abandoned daemons
				if d := cmp.Diff(tc.want, j.String()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				for line, want := range map[string]bool{
					"Deletion handlers wait":        tc.want != "10s delete; 10s gone",
					"calling the deletion handlers": tc.gaveUp,
				} {
					if got := strings.Count(log.String(), line); got != map[bool]int{true: 1}[want] {
						t.Errorf("%s: %d lines of %q", tc.reason, got, line)
					}
				}
			})
		})
	}
}

// TestDaemonsThatEndLetGo shows that the object of a daemon that has returned is released, without another event
// (deviation D-daemon-done).
func TestDaemonsThatEndLetGo(t *testing.T) {
	never := func(context.Context, *handlers.Invocation) error { return errors.New("never") }
	result := func(_ context.Context, c *handlers.Invocation) error { return c.Writer.SetResult("done") }
	late := func(then handlers.Func) handlers.Func {
		return func(ctx context.Context, c *handlers.Invocation) error {
			time.Sleep(20 * time.Second)
			return then(ctx, c)
		}
	}
	fatal := func(h *handlers.Handler) *handlers.Handler { h.Policy.Errors = handlers.ErrorsPermanent; return h }
	tests := map[string]struct {
		reason string
		own    *handlers.Handler
		status string
	}{
		"Nil": {"a daemon that returns nothing releases the object",
			daemon("d", handlers.BackgroundOptions{}, late(succeed)), ""},
		"NilAtOnce": {"a daemon that returns at once releases the object",
			daemon("d", handlers.BackgroundOptions{}, succeed), ""},
		"Result": {"a daemon that returns a result releases the object",
			daemon("d", handlers.BackgroundOptions{}, late(result)), "done"},
		"ResultAtOnce": {"a daemon that returns a result at once releases the object",
			daemon("d", handlers.BackgroundOptions{}, result), "done"},
		"Failure": {"a daemon that has failed permanently releases the object",
			fatal(daemon("d", handlers.BackgroundOptions{}, late(never))), ""},
		"OneShot": {"a timer without a schedule releases the object after its call", timer("d", 0, late(succeed)),
			""},
		"FailedTimer": {"a timer that has failed permanently releases the object",
			fatal(timer("d", time.Minute, late(never))), ""},
		"OneShotResult": {"a timer without a schedule saves its result", timer("d", 0, late(result)), "done"},
	}
	for name, tc := range tests {
		for when, finalizers := range map[string]string{"New": "", "Restarted": `"` + ownPrefix + `finalizer"`} {
			t.Run(name+"/"+when, func(t *testing.T) {
				onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
					p.create("Pod", "c")
					p.merge("Pod", "c", `{"metadata":{"finalizers":[`+finalizers+`]}}`)
					defer operateAll(t, server, reconcilers.Options{}, registrationFor(t, "pods", tc.own))()
					time.Sleep(time.Minute)
					object := p.get("Pod", "c")
					if held := object.GetFinalizers(); len(held) > 0 {
						t.Errorf("%s: the object is still held: %v", tc.reason, held)
					}
					if got, _, _ := unstructured.NestedString(object.Object, "status", "d"); got != tc.status {
						t.Errorf("%s: the result is %q, want %q", tc.reason, got, tc.status)
					}
				})
			})
		}
	}
}

// TestDaemonsThatEndLeaveOthersAlone shows that an object is not released while another handler holds it.
func TestDaemonsThatEndLeaveOthersAlone(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		defer operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{}, succeed)),
			registrationFor(t, "configmaps", timer("t", time.Hour, succeed)))()
		time.Sleep(time.Minute)
		if d := cmp.Diff([]string{ownPrefix + "finalizer"}, p.get("ConfigMap", "c").GetFinalizers()); d != "" {
			t.Errorf("finalizers: -want, +got:\n%s", d)
		}
	})
}

// TestDaemonOfGoneObject shows that a daemon does not keep its slot if the object disappears between the pass and the
// start of the daemon.
func TestDaemonOfGoneObject(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var began atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{Settings: reconcilers.Settings{Daemons: 1}},
			registrationFor(t, "configmaps", &handlers.Handler{ID: "e", Family: handlers.Watching, Call: func(
				context.Context, *handlers.Invocation,
			) error {
				time.Sleep(2 * time.Second)
				return nil
			}}),
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{},
				func(ctx context.Context, call *handlers.Invocation) error {
					began.Add(1)
					<-ctx.Done()
					return nil
				})))
		defer stop()
		time.Sleep(time.Second)
		p.create("ConfigMap", "a")
		time.Sleep(time.Second)
		p.remove("ConfigMap", "a")
		time.Sleep(time.Minute)
		p.create("ConfigMap", "b")
		time.Sleep(time.Hour)
		if began.Load() != 1 {
			t.Errorf(
				"the daemon of b was called %d times in an hour: the daemon of the gone object a holds the only slot",
				began.Load(),
			)
		}
	})
}

// TestReleasedWhileDaemonRuns shows that a late write does not release an object while its daemon runs.
func TestReleasedWhileDaemonRuns(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var down atomic.Bool
		var deletes, ended atomic.Int64
		stop := operateAll(t, refusePatches(server, func(string) int {
			if down.Load() {
				return 500
			}
			return 0
		}), reconcilers.Options{Settings: reconcilers.Settings{KopfDeletions: true}},
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{CancelBackoff: 10 * time.Minute},
				func(ctx context.Context, call *handlers.Invocation) error {
					<-call.LiveObject.Stopping()
					time.Sleep(5 * time.Minute)
					ended.Add(1)
					return nil
				})),
			registrationFor(t, "configmaps", counting("del", cause.Delete, &deletes)))
		defer stop()
		p.create("ConfigMap", "c")
		time.Sleep(5 * time.Second)
		down.Store(true)
		p.remove("ConfigMap", "c")
		time.Sleep(30 * time.Second)
		down.Store(false)
		time.Sleep(3 * time.Minute)
		if p.count("ConfigMap") != 1 || deletes.Load() != 1 {
			t.Errorf(
				"%d objects, %d daemons ended, %d deletions: the object was released while its daemon runs",
				p.count("ConfigMap"), ended.Load(), deletes.Load(),
			)
		}
		time.Sleep(10 * time.Minute)
		if p.count("ConfigMap") != 0 || deletes.Load() != 1 {
			t.Errorf("finally: %d objects, %d deletions", p.count("ConfigMap"), deletes.Load())
		}
	})
}
