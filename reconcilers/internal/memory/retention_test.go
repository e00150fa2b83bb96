package memory_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

func panicErrorOf(with string) error { return panics.Contain(func() error { panic(with) }) }

// TestRetainedObjects shows that only objects with useful knowledge take memory: there may be millions of
// others.
func TestRetainedObjects(t *testing.T) {
	body := map[string]any{"metadata": map[string]any{"resourceVersion": "9"}}
	for name, tc := range map[string]struct {
		reason string
		happen func(o *memory.ObjectState)
		kept   bool
	}{
		"Nothing": {"an object without events is not kept", func(*memory.ObjectState) {}, false},
		"Write": {"an own write is kept until the cache has it",
			func(o *memory.ObjectState) { o.NoteWrite(body, false) }, true},
		"Released": {"a release is kept until the deletion arrives",
			func(o *memory.ObjectState) { o.NoteWrite(nil, true) }, true},
		"Failure": {
			"a failure is kept with the time of the next pass",
			func(o *memory.ObjectState) { o.Throttle.CountFailure(kind.DefaultErrorDelays, 0, time.Now()) }, true,
		},
		"Blocked": {"a blocked object is kept, so that it is logged once",
			func(o *memory.ObjectState) { o.NoteBlocked("why") }, true},
		"Panicked": {"a panic is kept, so that its stack is logged once",
			func(o *memory.ObjectState) { o.IsRepeatedPanic(panicErrorOf("boo")) }, true},
		"Failed": {"an ordinary error is not kept, as it is logged each time",
			func(o *memory.ObjectState) { o.IsRepeatedPanic(errors.New("no")) }, false},
		"Succeeded": {
			"a success clears blocks, panics and failures", func(o *memory.ObjectState) {
				o.NoteBlocked("why")
				o.IsRepeatedPanic(panicErrorOf("boo"))
				o.Throttle.CountFailure(kind.DefaultErrorDelays, 0, time.Now())
				o.NoteSuccess()
			}, false,
		},
	} {
		all := memory.NewObjects()
		o := all.BeginPass("u1")
		tc.happen(o)
		if all.EndPass("u1", o); (all.Len() == 1) != tc.kept {
			t.Errorf("%s: %s: %d objects are kept", name, tc.reason, all.Len())
		}
	}
}

// TestWrote shows when an own write is kept, and when it ends the object.
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
		"Written": {"a write is kept", []write{{bodyWithVersion("9"), false}}, true, false},
		"NothingMore": {
			"a pass without a write keeps the former one", []write{{bodyWithVersion("9"), false}, {nil, false}}, true,
			false,
		},
		"LastOne": {"a write that releases the object ends it", []write{{bodyWithVersion("9"), true}}, false,
			true},
		"AfterThat":    {"an ended object does not come back", []write{{nil, true}, {nil, false}}, false, true},
		"NothingAtAll": {"without a write nothing is kept", []write{{nil, false}}, false, false},
	} {
		o := &memory.ObjectState{}
		for _, one := range tc.writes {
			o.NoteWrite(one.body, one.released)
		}
		if kept, past := keepsWrite(o), o.HasEnded(cachedObjectOf(bodyWithVersion("9"))); kept != tc.written ||
			past != tc.end {
			t.Errorf("%s: %s: written %v, past its end %v", name, tc.reason, kept, past)
		}
	}
}

// TestRepeats shows that a repeated panic is recognized, so that its stack is logged once.
func TestRepeats(t *testing.T) {
	o := &memory.ObjectState{}
	for i, step := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"a new panic is not a repetition", panicErrorOf("boo"), false},
		{"the same panic is a repetition", panicErrorOf("boo"), true},
		{"another panic is not a repetition", panicErrorOf("bah"), false},
		{"an error without a stack is not a repetition", errors.New("no"), false},
		{"a repeated error without a stack is not a repetition", errors.New("no"), false},
		{"a panic after another error is not a repetition", panicErrorOf("bah"), false},
	} {
		if got := o.IsRepeatedPanic(step.err); got != step.want {
			t.Errorf("step %d: %s: got %v", i, step.reason, got)
		}
	}
}

// TestDefaultErrorDelaysAreFibonacci shows that the default delays are those of Kopf.
func TestDefaultErrorDelaysAreFibonacci(t *testing.T) {
	want := []time.Duration{time.Second, time.Second}
	for len(want) < 15 {
		want = append(want, want[len(want)-2]+want[len(want)-1])
	}
	if d := cmp.Diff(want, kind.DefaultErrorDelays); d != "" {
		t.Errorf("the delays differ from Kopf's: -want, +got:\n%s", d)
	}
}

// TestNamespacesOfAResource shows that each namespace of a resource has one memory, which can be dropped.
func TestNamespacesOfAResource(t *testing.T) {
	pods, jobs := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "batch", Resource: "jobs"}
	var all memory.Registry
	for _, scope := range []memory.KindScope{
		{Resource: pods, Namespace: "a"}, {Resource: pods}, {Resource: jobs, Namespace: "b"},
		{Resource: pods, Namespace: "a", Range: sharding.Range{Index: 1, Count: 2}},
	} {
		if first, again := all.MemoryOf(scope), all.MemoryOf(scope); first.Objects != again.Objects {
			t.Errorf("%s has two memories", scope)
		}
	}
	names := func() (names []string) {
		for _, scope := range all.ScopesOf(pods) {
			names = append(names, scope.String())
		}
		slices.Sort(names)
		return names
	}
	if d := cmp.Diff([]string{"pods", "pods in a", "pods in a range 1/2"}, names()); d != "" {
		t.Errorf("scopes of pods: -want, +got:\n%s", d)
	}
	all.DropScope(memory.KindScope{Resource: pods, Namespace: "a"})
	if d := cmp.Diff([]string{"pods", "pods in a range 1/2"}, names()); d != "" {
		t.Errorf("scopes of pods after a drop: -want, +got:\n%s", d)
	}
	for want, scope := range map[string]memory.KindScope{
		"jobs.batch": {Resource: jobs}, "pods in a": {Resource: pods, Namespace: "a"},
	} {
		if got := scope.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
