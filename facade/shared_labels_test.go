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

// selective is an operator of events and an index that are for production alone, on an API server that notes requests.
type selective struct {
	t          *testing.T
	server     *memapi.Server
	connection *memapi.Connection
	index      *kopf.Index[string, string]

	mu    sync.Mutex
	heard []string
}

func newSelective(t *testing.T, register func(v *selective, op *kopf.Operator)) *selective {
	v := &selective{t: t, server: memapi.New()}
	v.server.Install(served)
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

// hearing registers the handlers for those that the selection has.
func hearing(narrow func(kopf.Selection[*Widget]) kopf.Selection[*Widget]) func(*selective, *kopf.Operator) {
	return func(v *selective, op *kopf.Operator) {
		widgets := narrow(kopf.For(op, &Widget{}))
		v.index = kopf.NewIndex(widgets, "index", func(_ context.Context, w *Widget) (map[string]string, error) {
			return map[string]string{w.Name: w.Labels["tier"]}, nil
		})
		widgets.OnEvent("event", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.heard = append(v.heard, strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Object.Name)))
			return nil
		})
	}
}

func (v *selective) put(name, tier string) {
	v.server.Put(served, map[string]any{"metadata": map[string]any{
		"namespace": "ns", "name": name, "uid": "uid-" + name + tier, "labels": map[string]any{"tier": tier},
	}})
}

// label changes the labels as a client does.
func (v *selective) label(name, tier string) {
	v.t.Helper()
	user, err := memapi.NewClient(v.server, served)
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

func (v *selective) settle() { time.Sleep(time.Second) }

// after gives what was heard, what the index has, and what was asked, since it was called last.
func (v *selective) after(what func()) string {
	v.connection.Drain()
	what()
	v.settle()
	v.mu.Lock()
	defer v.mu.Unlock()
	var asked []string
	for _, r := range v.connection.Drain() {
		if r.Resource.Plural == served.Plural {
			asked = append(asked, fmt.Sprint(r.Verb, " ", r.Query.Get("labelSelector"), r.Query.Get("fieldSelector")))
		}
	}
	said := fmt.Sprintf("heard %q, indexed %q, asked %q", v.heard, slices.Sorted(v.index.Keys()), asked)
	v.heard = nil
	return said
}

// Handlers of events and indices hear of objects with the labels that all of them demand as if they were filtered here,
// but for the first time that the labels match: D-shared-labels.
func TestSharedLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSelective(t, hearing(func(s kopf.Selection[*Widget]) kopf.Selection[*Widget] {
			return s.WithLabel("tier", "prod")
		}))
		for i, step := range []struct {
			reason string
			what   func()
			want   string
		}{
			{"those that were there are listed", func() {}, `heard ["a"], indexed ["a"], asked []`},
			{
				"one that leaves is gone from the index, and nobody is told that it is gone, as it is there",
				func() { v.label("a", "test") }, `heard [], indexed [], asked ["list metadata.name=a"]`,
			},
			{"what becomes of it is no news", func() { v.label("a", "none") }, `heard [], indexed [], asked []`},
			{"it comes back", func() { v.label("a", "prod") }, `heard ["MODIFIED a"], indexed ["a"], asked []`},
			{
				"one that was there before comes for the first time", func() { v.label("b", "prod") },
				`heard ["ADDED b"], indexed ["a" "b"], asked []`,
			},
			{
				"one that is new is added", func() { v.put("c", "prod") },
				`heard ["ADDED c"], indexed ["a" "b" "c"], asked []`,
			},
			{
				"one that is really gone is told", func() { v.server.Delete(served, "ns", "a") },
				`heard ["DELETED a"], indexed ["b" "c"], asked ["list metadata.name=a"]`,
			},
			{
				"so is one that another one has taken the place of",
				func() { v.server.Delete(served, "ns", "b"); v.put("b", "none") },
				`heard ["DELETED b"], indexed ["c"], asked ["list metadata.name=b"]`,
			},
			{
				"one that is back as soon as it was asked for has changed",
				func() { v.label("c", "test"); synctest.Wait(); v.label("c", "prod") },
				`heard ["MODIFIED c"], indexed ["c"], asked ["list metadata.name=c"]`,
			},
		} {
			if d := cmp.Diff(step.want, v.after(step.what)); d != "" {
				t.Errorf("step %d, %s: -want, +got:\n%s", i, step.reason, d)
			}
		}
	})
}

// What was asked in vain is asked again, and nothing is lost.
func TestSharedLabelsWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var count atomic.Int32
		v := newSelective(t, func(v *selective, op *kopf.Operator) {
			v.connection.Before = func(_ context.Context, r memapi.Request) error {
				if r.Query.Get("fieldSelector") == "" || time.Since(began) > 10*time.Minute {
					return nil
				}
				count.Add(1)
				return memapi.Refusal(403)
			}
			hearing(func(s kopf.Selection[*Widget]) kopf.Selection[*Widget] {
				return s.MatchingLabels("tier=prod")
			})(v, op)
		})
		v.server.Delete(served, "ns", "a")
		time.Sleep(9 * time.Minute)
		d := cmp.Diff(`heard ["a"], indexed [], asked []`, v.after(func() {}))
		if asked := count.Load(); d != "" || asked < 10 || asked > 20 {
			t.Errorf("asked %d times, -want, +got:\n%s", asked, d)
		}
		time.Sleep(3 * time.Minute)
		if d := cmp.Diff(`heard ["DELETED a"], indexed [], asked []`, v.after(func() {})); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// A watch asks for no more than everybody wants, and for all that anybody wants.
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
			"what the filters say", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				s = s.MatchingLabels("tier in (a,b),!paused").WithLabel("team", "x").WithLabel("on", kopf.Present)
				event(s, "a")
			}, "on,!paused,team=x,tier in (a,b)",
		},
		"Shared": {
			"what two of them say", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod,!paused"), "a")
				event(s.WithLabel("paused", kopf.Absent).WithLabel("team", "x"), "b")
			}, "!paused",
		},
		"NotShared": {
			"one wants all", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod"), "a")
				event(s, "b")
			}, "",
		},
		"Functions": {
			"the API server cannot ask them", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.WithLabel("tier", func(value string, _ bool) bool { return value == "prod" }), "a")
			}, "",
		},
		"Changes": {
			"an object that does not match any more is cleaned up", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod"), "a")
				s.MatchingLabels("tier=prod").OnCreate("b", succeed)
			}, "",
		},
		"Memos": {
			"they are for as long as the object is there", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				event(s.MatchingLabels("tier=prod"), "a")
				kopf.NewMemo[int](s)
			}, "",
		},
		"Long": {
			"URLs have their limits", func(_ *kopf.Operator, s kopf.Selection[*Widget]) {
				var names []string
				for i := range 1000 {
					names = append(names, fmt.Sprint("n", i))
				}
				event(s.MatchingLabels("tier in ("+strings.Join(names, ",")+")"), "a")
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				server.Install(served)
				connection := server.Connect()
				op := kopf.New("test.example.org")
				tc.register(op, kopf.For(op, &Widget{}))
				stop := operate(t, connection, op, logr.Discard())
				time.Sleep(time.Second)
				stop()
				asked := connection.Drain()
				asked = slices.DeleteFunc(asked, func(r memapi.Request) bool {
					return r.Resource.Plural != served.Plural
				})
				if len(asked) != 1 || asked[0].Query.Get("labelSelector") != tc.want {
					t.Errorf("%s: want %q, asked for %+v", tc.reason, tc.want, asked)
				}
			})
		})
	}
}

// What an object has left for is nobody's matter where nobody is told of its end.
func TestSharedLabelsOfIndices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSelective(t, func(v *selective, op *kopf.Operator) {
			v.index = kopf.NewIndex(kopf.For(op, &Widget{}).WithLabel("tier", "prod"), "index",
				func(_ context.Context, w *Widget) (map[string]string, error) {
					return map[string]string{w.Name: ""}, nil
				})
		})
		for i, step := range []struct {
			reason string
			what   func()
			want   string
		}{
			{"it leaves", func() { v.label("a", "test") }, `heard [], indexed [], asked []`},
			{"it comes back", func() { v.label("a", "prod") }, `heard [], indexed ["a"], asked []`},
			{"it is gone", func() { v.server.Delete(served, "ns", "a") }, `heard [], indexed [], asked []`},
		} {
			if d := cmp.Diff(step.want, v.after(step.what)); d != "" {
				t.Errorf("step %d, %s: -want, +got:\n%s", i, step.reason, d)
			}
		}
	})
}

// One object of ten is a tenth of the traffic, and of its metadata it is less still.
func TestTrafficOfSharedLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Install(served)
		for i := range 200 {
			server.Put(served, map[string]any{
				"metadata": map[string]any{
					"namespace": "ns", "name": fmt.Sprintf("w%03d", i), "uid": fmt.Sprint("uid-", i),
					"labels": map[string]any{"share": fmt.Sprint(i % 10)},
				},
				"spec": map[string]any{"owner": strings.Repeat("x", 2000)},
			})
		}
		traffic := func(name string, register func(op *kopf.Operator)) int64 {
			meter := &metered{next: server, path: "/widgets"}
			op := kopf.New(name + ".example.org")
			register(op)
			stop := operate(t, meter, op, logr.Discard())
			time.Sleep(10 * time.Second)
			stop()
			return meter.bytes.Load()
		}
		handle := func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil }
		all := traffic("all", func(op *kopf.Operator) {
			mine := func(_ context.Context, w *Widget) bool { return w.Labels["share"] == "3" }
			kopf.For(op, &Widget{}).When(mine).OnEvent("a", handle)
		})
		shared := traffic("shared", func(op *kopf.Operator) {
			kopf.For(op, &Widget{}).WithLabel("share", "3").OnEvent("a", handle)
		})
		bare := traffic("bare", func(op *kopf.Operator) {
			kopf.For(op, widgetMetadata()).WithLabel("share", "3").OnEvent("a",
				func(context.Context, *metadataEvent) error { return nil })
		})
		if shared > all/9 || bare > shared/4 {
			t.Errorf("%d bytes for all, %d for a tenth, %d for its metadata", all, shared, bare)
		}
		t.Logf("200 objects with specs of 2000 bytes: %d bytes for all, %d for a tenth, %d for its metadata",
			all, shared, bare)
	})
}
