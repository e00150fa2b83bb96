package kopf_test

import (
	"context"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// selfish panics when it is encoded.
type selfish struct{}

func (selfish) MarshalJSON() ([]byte, error) { panic("not me") }

// TestMisbehavingProbes shows that a misbehaving probe does not affect the other probes, and that the endpoint names
// it.
func TestMisbehavingProbes(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	const encoding = "the result cannot be encoded: json: "
	cases := map[string]struct {
		reason string
		result func() any
		want   string
	}{
		"channel": {"a type that JSON does not have is an error", func() any { return make(chan int) },
			encoding + "unsupported type: chan int"},
		"no number": {"a number that JSON does not have is an error", func() any { return math.NaN() },
			encoding + "unsupported value: NaN"},
		"cycle": {"a result with a cycle is an error", func() any { return cyclic },
			encoding + "unsupported value: encountered a cycle"},
		"own method": {"a panic of the result's own method is an error", func() any { return selfish{} },
			"panic: not me"},
		"panic": {"a panic of the probe is an error", func() any { panic("boo") }, "panic: boo"},
		"Goexit": {"a probe that ends its goroutine is an error", func() any { runtime.Goexit(); return nil },
			"ended its goroutine"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, op, called := newCheckedManager(newManager(t, newScheme(t))), kopf.New("test.example.org"), false
				op.OnProbe("bad", func(context.Context, *kopf.Activity) (any, error) { return c.result(), nil },
					kopf.Retries(1))
				op.OnProbe("good", func(context.Context, *kopf.Activity) (any, error) { called = true; return 1, nil })
				if err := op.SetupWithManager(m); err != nil {
					t.Fatal(err)
				}
				got := strings.Join(failing(m.healthzChecks), "\n")
				if !strings.HasPrefix(got, `test.example.org/probes: `) ||
					!strings.Contains(got, `handler "bad" failed: `) ||
					!strings.Contains(got, c.want) || !called {
					t.Errorf("%s: want %q, got: %s", c.reason, c.want, got)
				}
			})
		})
	}
}

// TestCrowdAtTheEndpoint shows that concurrent requests to the endpoint share one call of each probe.
func TestCrowdAtTheEndpoint(t *testing.T) {
	withoutCluster(t)
	url, letGo := reserveAddress(t)
	op, calls, gate := newWidgetOperator(), &atomic.Int64{}, make(chan struct{})
	op.OnProbe("slow", func(context.Context, *kopf.Activity) (any, error) {
		calls.Add(1)
		<-gate
		return calls.Load(), nil
	})
	letGo()
	_, end := runUntilURLAnswers(t, op, url+"/nothing", "--liveness", url)
	defer end()
	var crowd sync.WaitGroup
	bodies := make(chan string, 1000)
	for range cap(bodies) {
		crowd.Go(func() { bodies <- get(t, url) })
	}
	for calls.Load() == 0 {
		runtime.Gosched()
	}
	close(gate)
	crowd.Wait()
	for range cap(bodies) {
		if body := <-bodies; body != `{"slow":1}` {
			t.Errorf("all requests must get the result of the one call, got %q", body)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls for all requests, want 1", n)
	}
}
