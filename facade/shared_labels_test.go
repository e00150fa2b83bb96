package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// labelWatcher is an operator with an event handler and an index for objects of production, on an API server that
// records requests.
type labelWatcher struct {
	t          *testing.T
	server     *memapi.Server
	connection *memapi.Connection
	index      *kopf.Index[string, string]

	mu     sync.Mutex
	events []string
}

func newSelective(t *testing.T, register func(v *labelWatcher, op *kopf.Operator)) *labelWatcher {
	v := &labelWatcher{t: t, server: memapi.New()}
	v.server.Install(widgetResource)
	v.connection = v.server.Connect()
	op := kopf.New("test.example.org")
	register(v, op)
	for _, name := range []string{"a", "b"} {
		v.put(name, map[string]string{"a": "prod", "b": "test"}[name])
	}
	t.Cleanup(operate(t, v.connection, op, logr.Discard()))
	v.settle()
	return v
}

// registerForLabels registers an event handler and an index for a narrower selection.
func registerForLabels(
	narrow func(kopf.Selection[*Widget]) kopf.Selection[*Widget],
) func(*labelWatcher, *kopf.Operator) {
	return func(v *labelWatcher, op *kopf.Operator) {
		widgets := narrow(kopf.For(op, &Widget{}))
		v.index = kopf.NewIndex(widgets, "index", func(_ context.Context, w *Widget) (map[string]string, error) {
			return map[string]string{w.Name: w.Labels["tier"]}, nil
		})
		widgets.OnEvent("event", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.events = append(v.events, strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Object.Name)))
			return nil
		})
	}
}

func (v *labelWatcher) put(name, tier string) {
	v.server.Put(widgetResource, map[string]any{"metadata": map[string]any{
		"namespace": "ns", "name": name, "uid": "uid-" + name + tier, "labels": map[string]any{"tier": tier},
	}})
}

// label changes the label of an object as a client.
func (v *labelWatcher) label(name, tier string) {
	v.t.Helper()
	user, err := memapi.NewClient(v.server, widgetResource)
	if err != nil {
		v.t.Fatal(err)
	}
	object := widgetMetadata()
	object.Namespace, object.Name = "ns", name
	text := fmt.Sprintf(`{"metadata":{"labels":{"tier":%q}}}`, tier)
	patch := client.RawPatch("application/merge-patch+json", []byte(text))
	if err := user.Patch(v.t.Context(), object, patch); err != nil {
		v.t.Fatal(err)
	}
}

func (v *labelWatcher) settle() { time.Sleep(time.Second) }

// after calls a function, and returns the events, the keys of the index and the requests since its last call, without
// watches: clients open these again after five to ten minutes.
func (v *labelWatcher) after(what func()) string {
	v.connection.DrainRequests()
	what()
	v.settle()
	v.mu.Lock()
	defer v.mu.Unlock()
	var asked []string
	for _, r := range v.connection.DrainRequests() {
		if r.Resource.Plural == widgetResource.Plural && r.Verb != "watch" {
			asked = append(asked, fmt.Sprint(r.Verb, " ", r.Query.Get("labelSelector"), r.Query.Get("fieldSelector")))
		}
	}
	said := fmt.Sprintf("events %q, indexed %q, requests %q", v.events, slices.Sorted(v.index.Keys()), asked)
	v.events = nil
	return said
}

// TestSharedLabels shows that event handlers and indices receive objects with the labels that all of them require as if
// the objects were filtered locally, except for the first time that the labels match: D-shared-labels.
func TestSharedLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSelective(t, registerForLabels(func(s kopf.Selection[*Widget]) kopf.Selection[*Widget] {
			return s.WithLabel("tier", "prod")
		}))
		for i, step := range []struct {
			reason string
			change func()
			want   string
		}{
			{"existing objects with the label are listed", func() {}, `events ["a"], indexed ["a"], requests []`},
			{
				"an object that loses the label leaves the index without a deletion event",
				func() { v.label("a", "test") }, `events [], indexed [], requests ["list metadata.name=a"]`,
			},
			{"a change of an object without the label is not reported", func() { v.label("a", "none") },
				`events [], indexed [], requests []`},
			{"an object that gets the label back is reported as modified", func() { v.label("a", "prod") },
				`events ["MODIFIED a"], indexed ["a"], requests []`},
			{
				"an existing object that gets the label for the first time is reported as added", func() {
					v.label("b",
						"prod")
				},
				`events ["ADDED b"], indexed ["a" "b"], requests []`,
			},
			{
				"a new object with the label is reported as added", func() { v.put("c", "prod") },
				`events ["ADDED c"], indexed ["a" "b" "c"], requests []`,
			},
			{
				"a deleted object is reported as deleted", func() { v.server.Delete(widgetResource, "ns", "a") },
				`events ["DELETED a"], indexed ["b" "c"], requests ["list metadata.name=a"]`,
			},
			{
				"an object whose successor does not have the label is reported as deleted",
				func() { v.server.Delete(widgetResource, "ns", "b"); v.put("b", "none") },
				`events ["DELETED b"], indexed ["c"], requests ["list metadata.name=b"]`,
			},
			{
				"an object that has the label back before the request is reported as modified",
				func() { v.label("c", "test"); synctest.Wait(); v.label("c", "prod") },
				`events ["MODIFIED c"], indexed ["c"], requests ["list metadata.name=c"]`,
			},
		} {
			if d := cmp.Diff(step.want, v.after(step.change)); d != "" {
				t.Errorf("step %d, %s: -want, +got:\n%s", i, step.reason, d)
			}
		}
	})
}

// TestSharedLabelsWithoutAnswers shows that refused requests for objects that left the watch are repeated, and that no
// deletion is lost.
func TestSharedLabelsWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var count atomic.Int32
		v := newSelective(t, func(v *labelWatcher, op *kopf.Operator) {
			v.connection.Before = func(_ context.Context, r memapi.Request) error {
				if r.Query.Get("fieldSelector") == "" || time.Since(began) > 10*time.Minute {
					return nil
				}
				count.Add(1)
				return memapi.NewRefusal(403)
			}
			registerForLabels(func(s kopf.Selection[*Widget]) kopf.Selection[*Widget] {
				return s.MatchingLabels("tier=prod")
			})(v, op)
		})
		v.server.Delete(widgetResource, "ns", "a")
		time.Sleep(9 * time.Minute)
		d := cmp.Diff(`events ["a"], indexed [], requests []`, v.after(func() {}))
		if asked := count.Load(); d != "" || asked < 10 || asked > 20 {
			t.Errorf("%d refused requests, want 10 to 20; -want, +got:\n%s", asked, d)
		}
		time.Sleep(3 * time.Minute)
		if d := cmp.Diff(`events ["DELETED a"], indexed [], requests []`, v.after(func() {})); d != "" {
			t.Errorf("after the refusals: -want, +got:\n%s", d)
		}
	})
}

// TestWhichLabelsAreAskedFor shows that a watch requests the labels that all selections of its kind require, and no
// others.
func TestWhichLabelsAreAskedFor(t *testing.T) {
	event := func(s kopf.Selection[*Widget], id string) {
		s.OnEvent(id, func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil })
	}
	for name, tc := range map[string]struct {
		reason   string
		register func(op *kopf.Operator, widgets kopf.Selection[*Widget])
		want     string
	}{
		"One": {
			"the watch requests the labels of its only selection", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				s = s.MatchingLabels("tier in (a,b),!paused").WithLabel("team", "x").WithLabel("on", kopf.Present)
				event(s, "a")
			}, "on,!paused,team=x,tier in (a,b)",
		},
		"Shared": {
			"the watch requests the labels that both selections require",
			func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod,!paused"), "a")
				event(s.WithLabel("paused", kopf.Absent).WithLabel("team", "x"), "b")
			}, "!paused",
		},
		"NotShared": {
			"one selection without labels makes the watch request all objects",
			func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod"), "a")
				event(s, "b")
			}, "",
		},
		"Functions": {
			"a function for a label value cannot be requested", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.WithLabel("tier", func(value string, _ bool) bool { return value == "prod" }), "a")
			}, "",
		},
		"Changes": {
			"change handlers need all objects, to clean up those that stop matching",
			func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod"), "a")
				s.MatchingLabels("tier=prod").OnCreate("b", succeed)
			}, "",
		},
		"Memos": {
			"memos need all objects, until they are deleted", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod"), "a")
				kopf.NewMemo[int](s)
			}, "",
		},
		"Long": {
			"a selector that is too long for a URL is not requested",
			func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				var names []string
				for i := range 1000 {
					names = append(names, fmt.Sprint("n", i))
				}
				event(s.MatchingLabels("tier in ("+strings.Join(names, ",")+")"), "a")
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				connection := server.Connect()
				op := kopf.New("test.example.org")
				tc.register(op, kopf.For(op, &Widget{}))
				stop := operate(t, connection, op, logr.Discard())
				time.Sleep(time.Second)
				stop()
				asked := connection.DrainRequests()
				asked = slices.DeleteFunc(asked, func(r memapi.Request) bool {
					return r.Resource.Plural != widgetResource.Plural
				})
				if len(asked) != 1 || asked[0].Query.Get("labelSelector") != tc.want {
					t.Errorf("%s: want one request with the selector %q, got %+v", tc.reason, tc.want, asked)
				}
			})
		})
	}
}

// TestSharedLabelsOfIndices shows that the operator does not request objects that left the watch if no handler receives
// deletions.
func TestSharedLabelsOfIndices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSelective(t, func(v *labelWatcher, op *kopf.Operator) {
			v.index = kopf.NewIndex(kopf.For(op, &Widget{}).WithLabel("tier", "prod"), "index",
				func(_ context.Context, w *Widget) (map[string]string, error) {
					return map[string]string{w.Name: ""}, nil
				})
		})
		for i, step := range []struct {
			reason string
			change func()
			want   string
		}{
			{"an object that loses the label leaves the index", func() { v.label("a", "test") },
				`events [], indexed [], requests []`},
			{"an object that gets the label back returns to the index", func() { v.label("a", "prod") },
				`events [], indexed ["a"], requests []`},
			{"a deleted object leaves the index", func() { v.server.Delete(widgetResource, "ns", "a") },
				`events [], indexed [], requests []`},
		} {
			if d := cmp.Diff(step.want, v.after(step.change)); d != "" {
				t.Errorf("step %d, %s: -want, +got:\n%s", i, step.reason, d)
			}
		}
	})
}
