package facade_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

type Run = facade.Run[*Widget]

func goOn(context.Context, *Run) error { return nil }

func TestBackgroundOptions(t *testing.T) {
	op := facade.New("test.example.org")
	w := facade.For(op, &Widget{})
	w.Daemon(
		"d", goOn, facade.InitialDelay(time.Second), facade.CancelBackoff(2*time.Second),
		facade.CancelTimeout(3*time.Second), facade.CancelPolling(4*time.Second), facade.Retries(5),
	)
	w.Timer("t", time.Minute, goOn, facade.Sharp(), facade.Idle(time.Hour), facade.Jitter(0.5),
		facade.Timeout(time.Second),
		facade.InitialDelayOf(func(o *unstructured.Unstructured) time.Duration {
			return time.Duration(len(o.GetName()))
		}),
		facade.InField("spec.owner"))
	plan, err := facade.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []handlers.Background{
		{Daemon: true, CancelBackoff: 2 * time.Second, CancelTimeout: 3 * time.Second, CancelPolling: 4 * time.Second},
		{Interval: time.Minute, Sharp: true, Idle: time.Hour, Jitter: 0.5},
	}
	delays := []time.Duration{time.Second, 4}
	for i, r := range plan {
		h := r.Handler
		if d := cmp.Diff(
			want[i], *h.Background, cmpopts.IgnoreFields(handlers.Background{}, "InitialDelay"),
		); d != "" || h.Family != handlers.Spawning {
			t.Errorf("%s: family %v, -want, +got:\n%s", h.ID, h.Family, d)
		}
		if delay, err := h.Background.InitialDelay(
			map[string]any{"metadata": map[string]any{"name": "four"}},
		); delay != delays[i] || err != nil {
			t.Errorf("%s: the initial delay is %s, error %v", h.ID, delay, err)
		}
	}
	if *plan[0].Handler.Policy.Retries != 5 || *plan[1].Handler.Policy.Timeout != time.Second ||
		plan[1].Handler.Field == nil {
		t.Error("the limits and filters are those of all handlers")
	}
}

func TestBackgroundMistakes(t *testing.T) {
	tests := map[string]struct {
		reason   string
		register func(w facade.Selection[*Widget])
		want     string
	}{
		"NoDaemon": {
			"there is nothing to call", func(w facade.Selection[*Widget]) { w.Daemon("d", nil) },
			`Daemon("d"): the function is nil`,
		},
		"NoTimer": {
			"there is nothing to call", func(w facade.Selection[*Widget]) { w.Timer("t", time.Second, nil) },
			`Timer("t"): the function is nil`,
		},
		"NegativeInterval": {
			"time does not go back", func(w facade.Selection[*Widget]) { w.Timer("t", -time.Second, goOn) },
			"the interval -1s is negative",
		},
		"SharpOnce": {
			"there is no grid", func(w facade.Selection[*Widget]) { w.Timer("t", 0, goOn, facade.Sharp()) },
			"Sharp needs an interval",
		},
		"Jitter": {
			"it is a share", func(w facade.Selection[*Widget]) { w.Timer("t", 1, goOn, facade.Jitter(10)) },
			"Jitter(10): it is a share",
		},
		"Idle": {
			"it is a time", func(w facade.Selection[*Widget]) { w.Timer("t", 1, goOn, facade.Idle(0)) },
			"Idle(0s): it must be at least",
		},
		"Backoff": {
			"it is a time", func(w facade.Selection[*Widget]) { w.Daemon("d", goOn, facade.CancelBackoff(-1)) },
			"CancelBackoff(-1ns)",
		},
		"InitialDelay": {
			"it is a time", func(w facade.Selection[*Widget]) { w.Daemon("d", goOn, facade.InitialDelay(-1)) },
			"InitialDelay(-1ns)",
		},
		"InitialDelayOf": {
			"it cannot be asked", func(w facade.Selection[*Widget]) { w.Daemon("d", goOn, facade.InitialDelayOf(nil)) },
			"InitialDelayOf: the function is nil",
		},
		"SameID": {"one of them would be taken for the other", func(w facade.Selection[*Widget]) {
			w.Daemon("d", goOn)
			w.Daemon("d", goOn)
		}, "the id is taken by Daemon"},
		"SameIDForBoth": {"both are known by their ids alone", func(w facade.Selection[*Widget]) {
			w.Daemon("d", goOn)
			w.Timer("d", 1, goOn)
		}, `Timer("d"): the id is taken by Daemon`},
		"NoIndex": {
			"there is nothing to call",
			func(w facade.Selection[*Widget]) { facade.NewIndex[*Widget, string, int](w, "i", nil) },
			`NewIndex("i"): the function is nil`,
		},
		"NoMemo": {
			"there is nothing to make it",
			func(w facade.Selection[*Widget]) { facade.NewMemo(w, nil, func() *int { return nil }) },
			"NewMemo: one function",
		},
		"EmptyMemo": {
			"it would be of nobody",
			func(facade.Selection[*Widget]) { facade.NewMemo[int](facade.Selection[*Widget]{}) },
			"NewMemo: the selection is empty",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _ = facade.Plan(facade.New("strays.example.org"), newScheme(t)) // takes away what other tests left
			op := facade.New("test.example.org")
			tc.register(facade.For(op, &Widget{}))
			_, err := facade.Plan(op, newScheme(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// life is what a function sees of its object.
type life struct {
	object   map[string]any
	stopping chan struct{}
	reason   error
}

func (l *life) Object() map[string]any    { return l.object }
func (l *life) Stopping() <-chan struct{} { return l.stopping }
func (l *life) StopReason() error         { return l.reason }

func TestRun(t *testing.T) {
	op := facade.New("test.example.org")
	l := &life{object: body(map[string]any{"owner": "new"}), stopping: make(chan struct{}), reason: facade.ErrUnmatched}
	close(l.stopping)
	facade.For(op, &Widget{}).Daemon("d", func(_ context.Context, r *Run) error {
		<-r.Stopping()
		if r.Object().Spec.Owner != "new" || r.ID != "d" || !errors.Is(r.StopReason(), facade.ErrUnmatched) {
			t.Errorf("it sees %q, as %q, because of %v", r.Object().Spec.Owner, r.ID, r.StopReason())
		}
		l.object = nil
		if r.Object().Spec.Owner != "old" {
			t.Errorf("of what is gone, it sees what it began with: %q", r.Object().Spec.Owner)
		}
		r.Patch(func(w *Widget) { w.Status.Host = "here" })
		r.SetResult(7)
		r.Info("Seen", "it")
		return nil
	})
	a := call(t, op, body(map[string]any{"owner": "old"}), nil, func(a *execution.Attempt) {
		a.Call.Cause, a.Call.Live = &cause.Cause{Body: a.Call.Object}, l
		a.Call.Object = nil // as the engine leaves it
	})
	if a.Outcome.Err != nil || a.Result() != int64(7) || len(a.Made()) != 1 {
		t.Errorf("got %+v, result %v, %d functions", a.Outcome, a.Result(), len(a.Made()))
	}
	if host, _, _ := unstructured.NestedString(a.Call.Object, "status", "host"); host != "here" {
		t.Errorf("what is patched is on the copy that is written: %v", a.Call.Object)
	}
}

func TestRunOfAnObjectThatDoesNotDecode(t *testing.T) {
	op := facade.New("test.example.org")
	facade.For(op, &Widget{}).Daemon("d", func(_ context.Context, r *Run) error { r.Object(); return nil })
	a := call(t, op, body(nil), nil, func(a *execution.Attempt) {
		a.Call.Cause, a.Call.Live = &cause.Cause{Body: a.Call.Object}, &life{
			object: body(map[string]any{"size": "three"}),
		}
	})
	if !a.Outcome.Blocked {
		t.Errorf("it waits until the object is mended: got %+v", a.Outcome)
	}
}

func TestNewIndex(t *testing.T) {
	op := facade.New("test.example.org")
	byOwner := facade.NewIndex(facade.For(op, &Widget{}), "by-owner",
		func(_ context.Context, w *Widget) (map[string]int, error) {
			switch w.Spec.Owner {
			case "nobody":
				return nil, nil
			case "as before":
				return nil, facade.KeepEntries()
			}
			return map[string]int{w.Spec.Owner: len(w.Name)}, nil
		})
	plan, err := facade.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	h := plan[0].Handler
	play := func(uid, owner string) (keep bool, err error) {
		entries, keep, err := h.Index.Call(
			t.Context(), &handlers.Call{Handler: h, Object: body(map[string]any{"owner": owner})},
		)
		if err == nil && !keep {
			h.Index.Into.Replace(types.UID(uid), entries)
		}
		return keep, err
	}
	for _, uid := range []string{"u1", "u2"} {
		if keep, err := play(uid, "me"); keep || err != nil {
			t.Fatalf("kept %v, error %v", keep, err)
		}
	}
	if keep, err := play("u1", "as before"); !keep || err != nil {
		t.Errorf("kept %v, error %v", keep, err)
	}
	name := len((&unstructured.Unstructured{Object: body(nil)}).GetName())
	if d := cmp.Diff(
		[]int{name, name}, byOwner.Get("me"),
	); d != "" || byOwner.Len() != 1 || !byOwner.Has("me") || !slices.Equal(byOwner.Keys(), []string{"me"}) {
		t.Errorf("-want, +got:\n%s; keys %v", d, byOwner.Keys())
	}
	for value := range byOwner.All("me") {
		if value != name {
			t.Errorf("got %d", value)
		}
		break
	}
	for _, uid := range []string{"u1", "u2"} {
		_, _ = play(uid, "nobody")
	}
	if byOwner.Get("me") != nil || byOwner.Len() != 0 {
		t.Errorf("nothing is to be found any more, but %v", byOwner.Get("me"))
	}
}

func TestNewMemo(t *testing.T) {
	op := facade.New("test.example.org")
	count := facade.NewMemo[int](facade.For(op, &Widget{}))
	named := facade.NewMemo(facade.For(op, &Widget{}), func() *string { return ptr("fresh") })
	a, b := &Widget{}, &Widget{}
	a.UID, b.UID = "a", "b"
	*count.Of(a)++
	*count.Of(a)++
	if *count.Of(a) != 2 || *count.Of(b) != 0 || count.Len() != 2 || *named.Of(a) != "fresh" {
		t.Errorf("got %d and %d of %d, %q", *count.Of(a), *count.Of(b), count.Len(), *named.Of(a))
	}
	facade.EngineOptions(op).Forget("a")
	if count.Len() != 1 || *count.Of(a) != 0 {
		t.Errorf("what was of a gone object is gone: %d, %d", count.Len(), *count.Of(a))
	}
}

func TestLookupsAllocateTheResultAlone(t *testing.T) {
	op := facade.New("test.example.org")
	byOwner := facade.NewIndex(facade.For(op, &Widget{}), "by-owner",
		func(_ context.Context, w *Widget) (map[string]string, error) {
			return map[string]string{w.Spec.Owner: w.Name}, nil
		})
	plan, err := facade.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{"u1", "u2", "u3"} {
		plan[0].Handler.Index.Into.Replace(uid, map[any]any{"me": "name"})
	}
	key := strings.Repeat("m", 1) + "e"
	for what, lookup := range map[string]struct {
		most float64
		call func()
	}{
		"Get": {1, func() { byOwner.Get(key) }},
		"Has": {0, func() { byOwner.Has(key) }},
		"All": {0, func() {
			for range byOwner.All(key) {
				continue
			}
		}},
	} {
		lookup.call()
		if n := testing.AllocsPerRun(100, lookup.call); n > lookup.most {
			t.Errorf("%s: %v allocations, want %v", what, n, lookup.most)
		}
	}
}
