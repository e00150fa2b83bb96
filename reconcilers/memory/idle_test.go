package memory_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

func panicked(with string) error { return panics.Contain(func() error { panic(with) }) }

// Millions of objects need nothing to be remembered: only the others take memory.
func TestOnlyWhatSaysSomethingIsKept(t *testing.T) {
	body := map[string]any{"metadata": map[string]any{"resourceVersion": "9"}}
	for name, tc := range map[string]struct {
		reason string
		happen func(o *memory.Object)
		kept   bool
	}{
		"Nothing":  {"it is as good as a new one", func(*memory.Object) {}, false},
		"Write":    {"the cache may not have it yet", func(o *memory.Object) { o.Wrote(body, false) }, true},
		"Released": {"its end is to come", func(o *memory.Object) { o.Wrote(nil, true) }, true},
		"Failure": {
			"the next pass has its time",
			func(o *memory.Object) { o.Throttle.Fail(settings.DefaultErrorDelays, 0, time.Now()) }, true,
		},
		"Blocked":  {"it is logged once", func(o *memory.Object) { o.Blocks("why") }, true},
		"Panicked": {"so is its stack", func(o *memory.Object) { o.Repeats(panicked("boo")) }, true},
		"Failed":   {"an error is logged each time", func(o *memory.Object) { o.Repeats(errors.New("no")) }, false},
		"Succeeded": {
			"all of that is past", func(o *memory.Object) {
				o.Blocks("why")
				o.Repeats(panicked("boo"))
				o.Throttle.Fail(settings.DefaultErrorDelays, 0, time.Now())
				o.Succeed()
			}, false,
		},
	} {
		all := memory.NewObjects()
		o := all.Take("u1")
		tc.happen(o)
		if all.Put("u1", o); (all.Len() == 1) != tc.kept {
			t.Errorf("%s: %s: %d are kept", name, tc.reason, all.Len())
		}
	}
}

func TestWrote(t *testing.T) {
	type write struct {
		body     map[string]any
		released bool
	}
	for name, tc := range map[string]struct {
		reason       string
		writes       []write
		written, end bool
	}{
		"Written": {"the cache does not have it yet", []write{{body("9"), false}}, true, false},
		"NothingMore": {
			"what was written before counts still", []write{{body("9"), false}, {nil, false}}, true, false,
		},
		"LastOne":      {"the cache never gets it", []write{{body("9"), true}}, false, true},
		"AfterThat":    {"it does not come back", []write{{nil, true}, {nil, false}}, false, true},
		"NothingAtAll": {"nobody has written", []write{{nil, false}}, false, false},
	} {
		o := &memory.Object{}
		for _, one := range tc.writes {
			o.Wrote(one.body, one.released)
		}
		if kept, past := keepsWrite(o), o.Past(cached(body("9"))); kept != tc.written || past != tc.end {
			t.Errorf("%s: %s: written %v, past its end %v", name, tc.reason, kept, past)
		}
	}
}

// The stack of a panic is worth one line.
func TestRepeats(t *testing.T) {
	o := &memory.Object{}
	for i, step := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"it is new", panicked("boo"), false},
		{"it is the same", panicked("boo"), true},
		{"it is another one", panicked("bah"), false},
		{"errors have no stacks", errors.New("no"), false},
		{"they are worth a line each", errors.New("no"), false},
		{"something else was between", panicked("bah"), false},
	} {
		if got := o.Repeats(step.err); got != step.want {
			t.Errorf("step %d: %s: got %v", i, step.reason, got)
		}
	}
}

func TestDefaultErrorDelaysAreFibonacci(t *testing.T) {
	want := []time.Duration{time.Second, time.Second}
	for len(want) < 15 {
		want = append(want, want[len(want)-2]+want[len(want)-1])
	}
	if d := cmp.Diff(want, settings.DefaultErrorDelays); d != "" {
		t.Errorf("as in Kopf: -want, +got:\n%s", d)
	}
}

func TestNamespacesOfAResource(t *testing.T) {
	pods, jobs := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "batch", Resource: "jobs"}
	var all memory.Registry
	for _, scope := range []memory.Scope{{pods, "a"}, {pods, ""}, {jobs, "b"}} {
		if first, again := all.Of(scope), all.Of(scope); first.Objects != again.Objects {
			t.Errorf("%s has two memories", scope)
		}
	}
	names := all.Namespaces(pods)
	slices.Sort(names)
	if d := cmp.Diff([]string{"", "a"}, names); d != "" {
		t.Errorf("those of pods, not those of jobs: -want, +got:\n%s", d)
	}
	all.Drop(memory.Scope{Resource: pods, Namespace: "a"})
	if d := cmp.Diff([]string{""}, all.Namespaces(pods)); d != "" {
		t.Errorf("one was dropped: -want, +got:\n%s", d)
	}
	for want, scope := range map[string]memory.Scope{"jobs.batch": {Resource: jobs}, "pods in a": {pods, "a"}} {
		if got := scope.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
