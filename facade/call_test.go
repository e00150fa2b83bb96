package kopf_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// Compile-time checks: all arguments of handlers of objects implement Call, and all but Admission implement Results.
var (
	_ kopf.Call[*kopf.Unstructured] = (*kopf.Change[*kopf.Unstructured])(nil)
	_ kopf.Call[*kopf.Unstructured] = (*kopf.Task[*kopf.Unstructured])(nil)
	_ kopf.Call[*kopf.Unstructured] = (*kopf.WatchEvent[*kopf.Unstructured])(nil)
	_ kopf.Call[*kopf.Unstructured] = (*kopf.ChildEvent[*kopf.Unstructured, *kopf.Unstructured])(nil)
	_ kopf.Call[*kopf.Unstructured] = (*kopf.Admission[*kopf.Unstructured])(nil)
	_ kopf.Results                  = (*kopf.Change[*kopf.Unstructured])(nil)
	_ kopf.Results                  = (*kopf.Task[*kopf.Unstructured])(nil)
	_ kopf.Results                  = (*kopf.WatchEvent[*kopf.Unstructured])(nil)
	_ kopf.Results                  = (*kopf.ChildEvent[*kopf.Unstructured, *kopf.Unstructured])(nil)
)

// usedCall records the values that a function shared by several handlers has seen.
type usedCall struct {
	Current, Latest, Last string
	Absent                bool
	Resource              kopf.Resource
	Child                 string
}

// handling has the methods of the arguments of all handlers except admission handlers.
//
//nolint:interfacebloat // the methods are those that all arguments have
type handling[T client.Object] interface {
	kopf.Call[T]
	kopf.Results
	Info(reason, message string)
	Warn(reason, message string)
	Event(eventType, reason, message string)
	Exception(reason, message string, err error)
	EventRecorderFor(objects ...any) kopf.EventRecorder
	Adopt(children ...any) error
	Condition(conditionType string, status metav1.ConditionStatus, reason, message string)
}

// use calls these methods. It serves handlers of all verbs and types.
func use[T client.Object](h handling[T], ownerOf func(T) string) (usedCall, error) {
	last, err := kopf.Result[string](h, "last")
	_, absent := kopf.Result[string](h, "none")
	h.Patch(func(object T) { object.SetLabels(map[string]string{"patched": "yes"}) })
	h.TryPatch(func(object T) error { object.SetAnnotations(map[string]string{"tried": "yes"}); return nil })
	h.SetResult("done")
	h.Info("Seen", "info")
	h.Warn("Seen", "warning")
	h.Event("Other", "Seen", "other")
	child := &corev1.Pod{}
	err = errors.Join(err, h.Adopt(child))
	return usedCall{
		ownerOf(h.GetObject()), ownerOf(h.Latest()), last, errors.Is(absent, kopf.ErrNoResult), h.Resource(),
		child.GenerateName + " of " + child.OwnerReferences[0].Kind,
	}, err
}

// newerObject returns a newer state of the only object.
type newerObject map[string]any

func (l newerObject) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	if key.String() != "ns/w1" || uid != "uid-1" {
		panic("unexpected object")
	}
	return l
}

// TestHandlingIsOfAllVerbs shows that the arguments of change handlers, event handlers and daemons have the same
// methods with the same effects.
func TestHandlingIsOfAllVerbs(t *testing.T) {
	owner := func(w *Widget) string { return w.Spec.Owner }
	widgets := discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"},
		Plural:           "widgets", Namespaced: true, Shortcuts: []string{"w"},
	}
	cases := map[string]struct {
		reason   string
		register func(s kopf.Selection[*Widget], got *usedCall)
		tune     func(a *execution.Attempt, newer map[string]any)
		current  string
	}{
		"change": {"a change handler keeps the object of its call",
			func(s kopf.Selection[*Widget], got *usedCall) {
				s.OnCreate("fn", func(_ context.Context, c *Change) (err error) {
					*got, err = use(c, owner)
					c.Resource().Shortcuts[0] = "tampered"
					return err
				})
			}, func(a *execution.Attempt, newer map[string]any) { a.Call.LatestState = newerObject(newer) }, "old"},
		"event": {"an event handler keeps the object of its call", func(s kopf.Selection[*Widget], got *usedCall) {
			s.OnEvent("fn", func(_ context.Context, e *kopf.WatchEvent[*Widget]) (err error) {
				*got, err = use(e, owner)
				return err
			})
		}, func(a *execution.Attempt, newer map[string]any) { a.Call.LatestState = newerObject(newer) }, "old"},
		"run": {"a daemon gets the current object", func(s kopf.Selection[*Widget], got *usedCall) {
			s.Daemon("fn", func(_ context.Context, r *Run) (err error) {
				*got, err = use(r, owner)
				return err
			})
		}, func(a *execution.Attempt, newer map[string]any) {
			a.Call.Cause = &cause.Cause{Object: jsontext.NewFromValue(a.Call.Object)}
			a.Call.LiveObject, a.Call.Object = &fakeLive{object: newer}, nil
		}, "new"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, newer := body(map[string]any{"owner": "old"}), body(map[string]any{"owner": "new"})
			for _, object := range []map[string]any{before, newer} {
				object["status"] = map[string]any{"last": "result"}
			}
			var got usedCall
			op := kopf.New("test.example.org")
			tc.register(kopf.For(op, &Widget{}), &got)
			a := call(t, op, before, nil, func(a *execution.Attempt) {
				a.Call.Resource = &widgets
				tc.tune(a, newer)
			})
			want := usedCall{tc.current, "new", "result", true, kopf.Resource(widgets), "w1- of Widget"}
			want.Resource.Shortcuts = []string{"w"}
			if d := cmp.Diff(want, got); d != "" || a.Outcome.Err != nil {
				t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, a.Outcome.Err, d)
			}
			events, _ := a.Call.Events.(*recorder)
			if len(a.AllTransforms()) != 2 || a.ResultToWrite() != "done" || len(*events) != 3 {
				t.Errorf("unexpected outcome: %d changes, result %v, events %v", len(a.AllTransforms()),
					a.ResultToWrite(), events)
			}
		})
	}
}

// TestLatest shows that Latest returns the newest state of the object without changing c.Object.
func TestLatest(t *testing.T) {
	cases := map[string]struct {
		reason string
		newest map[string]any
		want   string
		failed bool
	}{
		"newer": {"Latest returns the newer object", body(map[string]any{"owner": "new"}), "new", false},
		"gone":  {"Latest of a deleted object returns its last state", nil, "old", false},
		"does not decode": {"a latest object that does not decode blocks the handler and keeps the other fields",
			body(map[string]any{"owner": "new", "size": "three"}), "new", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var latest *Widget
			op := newCreationOperator(func(_ context.Context, c *Change) error {
				c.Patch(func(w *Widget) { w.Spec.Big = 1 })
				latest = c.Latest()
				latest.Spec.Extra = map[string]string{"mine": "yes"}
				if c.Object.Spec.Owner != "old" || c.Object.Spec.Big != 1 {
					t.Errorf("Latest does not change c.Object: got %+v", c.Object.Spec)
				}
				return nil
			})
			a := call(t, op, body(map[string]any{"owner": "old"}), nil, func(a *execution.Attempt) {
				a.Call.LatestState = newerObject(tc.newest)
			})
			if latest.Spec.Owner != tc.want || latest.Spec.Big != 0 || a.Outcome.Blocked != tc.failed {
				t.Errorf("%s: got %+v, outcome %+v", tc.reason, latest.Spec, a.Outcome)
			}
			if spec, _ := tc.newest["spec"].(map[string]any); spec["extra"] != nil {
				t.Error("a change to the result of Latest does not reach the cache")
			}
		})
	}
}

// TestFiltersKnowTheKind shows that a filter function can read the resource and the latest object.
func TestFiltersKnowTheKind(t *testing.T) {
	op := kopf.New("test.example.org")
	var got kopf.Resource
	kopf.For(op, &Widget{}).OnCreate("fn", succeed, kopf.WhenChange(func(_ context.Context, c *Change) bool {
		got = c.Resource()
		return c.Latest().Name == "w1"
	}))
	plan := planOf(t, op)
	_, ok, err := plan[0].Handler.MatchesObject(t.Context(), &cause.Cause{Object: jsontext.NewFromValue(body(nil))})
	if !ok || err != nil || got.Kind != "Widget" || got.Group != "example.org" || got.Version != "v1" {
		t.Errorf("a filter gets the resource and the object: got %+v, %v, error %v", got, ok, err)
	}
}
