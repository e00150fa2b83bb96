package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// requestCounter counts the requests to a server.
type requestCounter struct {
	next             http.RoundTripper
	count            atomic.Int64
	lastFieldManager atomic.Value // the field manager of the last creation
}

func (c *requestCounter) RoundTrip(request *http.Request) (*http.Response, error) {
	c.count.Add(1)
	if request.Method == http.MethodPost {
		c.lastFieldManager.Store(request.URL.Query().Get("fieldManager"))
	}
	return c.next.RoundTrip(request)
}

// journal records lines in the order in which they happen.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.lines)
}

func (j *journal) requireLines(t *testing.T, lines ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if d := cmp.Diff(lines, j.lines); d != "" {
		t.Errorf("recorded lines differ: -want, +got:\n%s", d)
	}
}

// managerOn returns a manager for the API server, without a log, with the changed options.
func managerOn(t testing.TB, server http.RoundTripper, change ...func(o *ctrl.Options)) ctrl.Manager {
	t.Helper()
	options := ctrl.Options{
		Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	}
	for _, one := range change {
		one(&options)
	}
	m, err := ctrl.NewManager(memapi.Config(server), options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// startInManager sets the operator up in a new manager and starts that manager. The returned function stops it.
func startInManager(
	t testing.TB, server http.RoundTripper, op *kopf.Operator, change ...func(o *ctrl.Options),
) (stop func() error) {
	t.Helper()
	m := managerOn(t, server, change...)
	if err := op.SetupWithManager(m); err != nil {
		t.Fatal(err)
	}
	return startManager(t, m)
}

// startManager starts a manager. The returned function stops it and returns the error of Start.
func startManager(t testing.TB, m ctrl.Manager) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	var ended error
	done := make(chan struct{})
	go func() { defer close(done); ended = m.Start(ctx) }()
	return func() error { cancel(); <-done; return ended }
}

func servedAPI() *requestCounter {
	server := memapi.New()
	server.Install(widgetResource)
	server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	return &requestCounter{next: server}
}

// TestActivitiesInAManager shows that, in a manager of the project, requests of the operator wait for the startup
// handlers and that the cleanup handlers wait for all other handlers.
func TestActivitiesInAManager(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		server, seen := servedAPI(), &journal{}
		op := kopf.New("test.example.org")
		kopf.For(op, &Widget{}).OnCreate("create", func(ctx context.Context, _ *Change) error {
			seen.add("create")
			<-ctx.Done() // the context ends when the exit timeout has passed
			seen.add("created")
			return nil
		})
		op.OnStartup("first", func(_ context.Context, s *kopf.Activity) error {
			seen.add("startup " + s.ID)
			if time.Sleep(time.Hour); s.Retry == 0 {
				return kopf.Temporary(fmt.Errorf("not yet"), time.Hour)
			}
			if n := server.count.Load(); n != 0 {
				t.Errorf("the operator sends no request before the startup handlers end: got %d requests", n)
			}
			s.Settings.Queueing.ExitTimeout = 10 * time.Second
			return nil
		})
		op.OnCleanup("last", func(context.Context, *kopf.Activity) error {
			seen.add("cleanup")
			return nil
		})
		stop := startInManager(t, server, op)
		time.Sleep(24 * time.Hour)
		exited := time.Now()
		go func() {
			time.Sleep(time.Second)
			seen.add("exiting")
		}()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(exited).Round(time.Second); took != 10*time.Second {
			t.Errorf("handlers get the exit timeout that the startup handler has set: the exit took %s", took)
		}
		seen.requireLines(t, "startup first", "startup first", "create", "exiting", "created", "cleanup")
	})
}

// TestStartupFailsAManager shows that the manager fails and sends no request if a startup handler fails or makes a
// change that is invalid or too late.
func TestStartupFailsAManager(t *testing.T) {
	cases := map[string]struct {
		reason string
		fn     func(ctx context.Context, s *kopf.Activity) error
		want   []string
	}{
		"failure": {
			"a failed startup handler ends the manager with its error", func(context.Context, *kopf.Activity) error {
				return kopf.Permanent(fmt.Errorf("no pool"))
			}, []string{`operator "test.example.org": startup: handler "a" failed: no pool`},
		},
		"panic": {
			"a panic without further retries is reported like a failure",
			func(context.Context, *kopf.Activity) error { panic("boo") },
			[]string{`startup: handler "a" failed: gave up after 1 attempt: panic: boo`},
		},
		"wrong setting": {
			"an invalid setting is reported like one given to kopf.New",
			func(_ context.Context, s *kopf.Activity) error {
				s.Settings.Queueing.WorkerLimit = -1
				return nil
			}, []string{"kopf.New, changed by OnStartup: Queueing.WorkerLimit: -1"},
		},
		"late handler": {
			"a handler registered after the setup is an error", nil, []string{
				`OnCreate("late"): registered after the operator was set up`,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, op := servedAPI(), newCreationOperator(succeed)
				if c.fn == nil {
					c.fn = func(context.Context, *kopf.Activity) error {
						kopf.For(op, &Widget{}).OnCreate("late", succeed)
						return nil
					}
				}
				op.OnStartup("a", c.fn, kopf.Retries(1))
				op.OnCleanup("b", func(context.Context, *kopf.Activity) error {
					t.Error("cleanup handlers do not run after a failed startup")
					return nil
				})
				stop := startInManager(t, server, op)
				time.Sleep(time.Hour)
				err := stop()
				if err == nil || slices.ContainsFunc(c.want, func(want string) bool {
					return !strings.Contains(err.Error(), want)
				}) {
					t.Errorf("%s\nwant %q in the error, got: %v", c.reason, c.want, err)
				}
				if n := server.count.Load(); n != 0 {
					t.Errorf("%s: %d requests were sent", c.reason, n)
				}
			})
		})
	}
}

// TestExitDuringStartupInAManager shows that the exit abandons a startup handler that ignores its context, and that
// a handler that returns in time is not a failure.
func TestExitDuringStartupInAManager(t *testing.T) {
	for name, deaf := range map[string]bool{"obeying": false, "deaf": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, op := servedAPI(), newCreationOperator(succeed)
				op.OnStartup("a", func(ctx context.Context, _ *kopf.Activity) error {
					if <-ctx.Done(); deaf {
						time.Sleep(time.Hour)
					}
					if !errors.Is(context.Cause(ctx), kopf.ErrExiting) {
						t.Errorf("the context of a startup handler ends with ErrExiting: got %v", context.Cause(ctx))
					}
					return context.Cause(ctx)
				})
				stop := startInManager(t, server, op)
				time.Sleep(time.Minute)
				began := time.Now()
				if err := stop(); err != nil {
					t.Error(err)
				}
				want := map[bool]time.Duration{false: 0, true: 5 * time.Second}[deaf]
				if took := time.Since(began); took != want || server.count.Load() != 0 {
					t.Errorf("the exit waits for the handler until the timeout: took %s, want %s; %d requests",
						took, want, server.count.Load())
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
