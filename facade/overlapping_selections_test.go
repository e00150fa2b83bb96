package kopf_test

import (
	"context"
	"maps"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// callCounter counts calls of functions by name.
type callCounter struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *callCounter) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[what]++
}

func (c *callCounter) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// registerOverlapping registers the same functions, one of each family, for each of the selections, and returns the
// indices.
func registerOverlapping(
	calls *callCounter, selections ...kopf.Selection[*kopf.Unstructured],
) (indices []*kopf.Index[string, string]) {
	event := func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error { calls.count("event"); return nil }
	create := func(context.Context, *kopf.Change[*kopf.Unstructured]) error { calls.count("create"); return nil }
	daemon := func(_ context.Context, r *kopf.Task[*kopf.Unstructured]) error { calls.count("daemon"); return nil }
	tick := func(_ context.Context, r *kopf.Task[*kopf.Unstructured]) error { calls.count("tick"); return nil }
	index := func(_ context.Context, object *kopf.Unstructured) (map[string]string, error) {
		return map[string]string{"name": object.GetName()}, nil
	}
	for _, s := range selections {
		s.OnEvent("event", event)
		s.OnCreate("create", create)
		s.Daemon("daemon", daemon)
		s.Timer("tick", 24*time.Hour, tick)
		indices = append(indices, kopf.NewIndex(s, "index", index))
	}
	return indices
}

// TestOneFunctionUnderOverlappingSelectionsIsCalledOnce shows that a function under several selections handles an
// object once.
func TestOneFunctionUnderOverlappingSelectionsIsCalledOnce(t *testing.T) {
	once := map[string]int{"event": 1, "create": 1, "daemon": 1, "tick": 1}
	tests := map[string]struct {
		reason string
		labels map[string]any
		choose func(op *kopf.Operator) []kopf.Selection[*kopf.Unstructured]
		want   map[string]int
		index  []string
	}{
		"Spellings": {
			"two names of one kind select the kind once", nil,
			func(op *kopf.Operator) []kopf.Selection[*kopf.Unstructured] {
				return []kopf.Selection[*kopf.Unstructured]{
					kopf.ForResource(op, "configmaps"), kopf.ForResource(op, "cm"),
				}
			}, once, []string{"w1"},
		},
		"BothFilters": {
			"an object that both selections match is handled once", map[string]any{"a": "1", "b": "1"}, byEitherLabel,
			once, []string{"w1"},
		},
		"SecondFilter": {
			"an object that only the second selection matches is handled", map[string]any{"b": "1"}, byEitherLabel,
			once, []string{"w1"},
		},
		"NoFilter": {"an object that no selection matches is not handled", nil, byEitherLabel, map[string]int{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, calls := memapi.New(), &callCounter{calls: map[string]int{}}
				op := kopf.New("overlapping.example.org", kopf.Settings{
					Peering: kopf.PeeringSettings{Standalone: true},
				})
				indices := registerOverlapping(calls, tc.choose(op)...)
				server.Put(memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true},
					map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "w1", "labels": tc.labels}})
				r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
				r.Ready()
				time.Sleep(time.Minute)
				synctest.Wait()
				got := calls.all()
				if got["event"] > 1 { // each write of the operator is an event as well
					got["event"] = got["event"] - len(r.Writes())
				}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				for n, index := range indices {
					if d := cmp.Diff(tc.index, index.Get("name")); d != "" {
						t.Errorf("%s: index %d: -want, +got:\n%s", tc.reason, n, d)
					}
				}
			})
		})
	}
}

func byEitherLabel(op *kopf.Operator) []kopf.Selection[*kopf.Unstructured] {
	maps := kopf.ForResource(op, "configmaps")
	return []kopf.Selection[*kopf.Unstructured]{maps.MatchingLabels("a=1"), maps.MatchingLabels("b=1")}
}

// TestTwoFunctionsUnderOneIDAreAnError shows that two functions under one id are an error. Closures of one literal are
// two functions, too, because they cannot be distinguished.
func TestTwoFunctionsUnderOneIDAreAnError(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	limit := func(largest int32) kopf.AdmissionFunc[*Widget] {
		return func(_ context.Context, a *kopf.Admission[*Widget]) error {
			if a.Object.Spec.Size > largest {
				return kopf.Deny(422, "too large")
			}
			return nil
		}
	}
	widgets.MatchingLabels("a").Validate("limit", limit(1))
	widgets.MatchingLabels("b").Validate("limit", limit(2))
	widgets.OnCreate("create", func(context.Context, *Change) error { return nil })
	widgets.OnCreate("create", func(context.Context, *Change) error { return nil })
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil {
		t.Fatal("a second function under one id must be an error")
	}
	const line = `overlapping_selections_test.go:\d+`
	for _, want := range []string{
		line + `: Validate\("limit"\): the id is taken by Validate at facade/` + line + " ",
		line + `: OnCreate\("create"\): the id is taken by OnCreate at facade/` + line + " ",
		"give this one its own id, or register one function value under both selections",
	} {
		if !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("the error must name both lines and the solution: want %q in\n%v", want, err)
		}
	}
}
