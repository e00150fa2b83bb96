package kopf_test

import (
	"context"
	"math"
	"runtime"
	"strings"
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
