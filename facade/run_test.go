package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// recordingOperator is an operator in a process with other operators.
type recordingOperator struct {
	op   *kopf.Operator
	stop context.CancelFunc
	err  chan error

	mu    sync.Mutex
	lines []string
	calls []string
}

func (g *recordingOperator) note(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, what)
}

func (g *recordingOperator) did() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.calls, " ")
}

// newRecordingOperator returns an operator that records its calls.
func newRecordingOperator(name string, settings ...kopf.Settings) *recordingOperator {
	g := &recordingOperator{op: kopf.New(name, settings...), err: make(chan error, 1)}
	g.op.OnStartup("begin", func(context.Context, *kopf.Activity) error { g.note("startup"); return nil })
	g.op.OnCleanup("end", func(context.Context, *kopf.Activity) error { g.note("cleanup"); return nil })
	kopf.ForResource(g.op, "configmaps").OnCreate("c", func(
		ctx context.Context, c *kopf.Change[*kopf.Unstructured],
	) error {
		log.FromContext(ctx).Info("Called", "object", c.Object.GetName())
		g.note(c.Object.GetName())
		return nil
	})
	return g
}

func (g *recordingOperator) run(t *testing.T, settings kopf.RunSettings) {
	t.Helper()
	settings.Log = funcr.New(func(_, line string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.lines = append(g.lines, line)
	}, funcr.Options{})
	ctx, stop := context.WithCancel(t.Context())
	g.stop = stop
	go func() { g.err <- g.op.Run(ctx, settings) }()
}

// end stops the operator and returns its error.
func (g *recordingOperator) end() error { g.stop(); return <-g.err }

func createNamed(t *testing.T, server *memapi.Server, name string) {
	t.Helper()
	user := clientOf(t, server)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"},
	}}
	if err := user.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// countSeries returns how many counters of a metric are above zero.
func countSeries(t *testing.T, registry *prometheus.Registry, name string) int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			count := 0
			for _, one := range family.GetMetric() {
				if one.GetCounter().GetValue() > 0 {
					count++
				}
			}
			return count
		}
	}
	return 0
}

// TestRunSeveralOperators shows that operators of one process have their own clusters, logs and metrics, even with the
// same name. Each of them ends on its own, and another one of its name can follow.
func TestRunSeveralOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name, rounds = "guest.example.org", 3
		servers := []*memapi.Server{memapi.New(), memapi.New()}
		var goroutines []int
		for round := range rounds {
			goroutines = append(goroutines, growth.Goroutines())
			registries := []*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()}
			var guests []*recordingOperator
			for i, server := range servers {
				g := newRecordingOperator(name)
				g.run(t, kopf.RunSettings{Config: memapi.Config(server), Metrics: registries[i]})
				guests = append(guests, g)
				<-g.op.Ready()
			}
			createNamed(t, servers[0], fmt.Sprint("first-", round))
			time.Sleep(10 * time.Second)
			if err := guests[0].end(); err != nil {
				t.Error(err)
			}
			createNamed(t, servers[0], fmt.Sprint("missed-", round))
			createNamed(t, servers[1], fmt.Sprint("second-", round))
			time.Sleep(10 * time.Second)
			if err := guests[1].end(); err != nil {
				t.Error(err)
			}
			want := []string{
				fmt.Sprintf("startup first-%d cleanup", round), fmt.Sprintf("startup second-%d cleanup", round),
			}
			if round > 0 {
				want[0] = fmt.Sprintf("startup missed-%d first-%d cleanup", round-1, round)
			}
			for i, g := range guests {
				if got := g.did(); got != want[i] {
					t.Errorf("round %d: operator %d did %q, want %q", round, i, got, want[i])
				}
				if n := len(slices.DeleteFunc(g.lines, func(l string) bool {
					return !strings.Contains(l, `"msg"="Called"`)
				})); n != len(strings.Fields(want[i]))-2 {
					t.Errorf("round %d: %d lines of handlers in the log of operator %d", round, n, i)
				}
				if n := countSeries(t, registries[i], "kopf_handler_attempts_total"); n != 3 {
					t.Errorf("round %d: %d series of operator %d, want those of startup, creation and cleanup", round,
						n, i)
				}
			}
			synctest.Wait()
		}
		goroutines = append(goroutines, growth.Goroutines())
		if first, last := goroutines[0], goroutines[rounds]; last > first {
			t.Errorf("%d goroutines before, %d after: %v", first, last, goroutines)
		}
	})
}

// TestRunErrors shows the errors of Run.
func TestRunErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := memapi.Config(memapi.New())
		login := func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
			return &kopf.ConnectionInfo{Config: config}, nil
		}
		plain := func() *kopf.Operator { return newRecordingOperator("guest.example.org").op }
		for name, c := range map[string]struct {
			op       func() *kopf.Operator
			settings []kopf.RunSettings
			want     string
		}{
			"nil":  {func() *kopf.Operator { return nil }, nil, "make it with kopf.New"},
			"many": {plain, make([]kopf.RunSettings, 2), "2 RunSettings are given"},
			"cluster": {plain, []kopf.RunSettings{{Config: config, Context: "c"}},
				"the Config says which cluster, so there must be neither Kubeconfig, nor Context, nor OnLogin"},
			"login": {func() *kopf.Operator {
				op := plain()
				op.OnLogin("l", login)
				return op
			}, []kopf.RunSettings{{Config: config}}, "nor OnLogin"},
			"liveness": {plain, []kopf.RunSettings{{Config: config, Liveness: "nowhere"}}, "Liveness: "},
			"no file":  {plain, []kopf.RunSettings{{Kubeconfig: "testdata/none.yaml"}}, "none.yaml"},
			"process": {func() *kopf.Operator {
				return kopf.New("guest.example.org", kopf.Settings{UltimateExitingTimeout: time.Minute})
			}, nil, "UltimateExitingTimeout: it is for kopf.Main"},
			"registrations": {func() *kopf.Operator {
				op := plain()
				kopf.ForResource(op, "configmaps").OnCreate("c", nil)
				return op
			}, []kopf.RunSettings{{Config: config}}, "run_test.go"},
			"startup": {func() *kopf.Operator {
				op := plain()
				op.OnStartup("s", func(context.Context, *kopf.Activity) error {
					return kopf.Permanent(errors.New("no pool"))
				})
				return op
			}, []kopf.RunSettings{{Config: config}}, "no pool"},
			"cleanup": {func() *kopf.Operator {
				op := plain()
				op.OnCleanup("s", func(context.Context, *kopf.Activity) error {
					return kopf.Permanent(errors.New("still open"))
				})
				return op
			}, []kopf.RunSettings{{Config: config}}, "still open"},
		} {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			if err := c.op().Run(ctx, c.settings...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
			stop()
		}
	})
}

// TestRunOnce shows that an operator runs only once, whatever its end was.
func TestRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := kopf.RunSettings{Config: memapi.Config(memapi.New())}
		g := newRecordingOperator("guest.example.org")
		g.run(t, settings)
		<-g.op.Ready()
		for _, when := range []string{"while it runs", "after its end"} {
			err := g.op.Run(t.Context(), settings)
			if err == nil || !strings.Contains(err.Error(), "make another one with kopf.New") {
				t.Errorf("%s: %v", when, err)
			}
			if err := g.end(); when == "while it runs" && err != nil {
				t.Error(err)
			}
			g.err <- nil
		}
	})
}

// TestRunBesideOneThatFails shows that an operator that fails, here with refused credentials, does not affect others.
func TestRunBesideOneThatFails(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		refusing := memapi.Config(server)
		refusing.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody, Request: r}, nil
		})
		good, bad := newRecordingOperator("good.example.org"), newRecordingOperator("bad.example.org")
		good.run(t, kopf.RunSettings{Config: memapi.Config(server)})
		bad.run(t, kopf.RunSettings{Config: refusing})
		if err := <-bad.err; err == nil || !strings.Contains(err.Error(), `operator "bad.example.org"`) {
			t.Errorf("the error must name the operator that failed: got %v", err)
		}
		bad.stop()
		createNamed(t, server, "a")
		time.Sleep(time.Minute)
		if err := good.end(); err != nil || good.did() != "startup a cleanup" {
			t.Errorf("%v; did %q", err, good.did())
		}
		select {
		case <-bad.op.Ready():
			t.Error("the operator that failed must not be ready")
		default:
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
