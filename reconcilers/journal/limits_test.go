package journal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// TestObjectsThatAreForgotten shows that the objects without entries for the longest time are dropped first.
func TestObjectsThatAreForgotten(t *testing.T) {
	cases := map[string]struct {
		reason string
		limit  int
		happen string // the objects of the entries
		want   string // the objects that are kept
	}{
		"room":           {"objects within the limit are kept", 3, "abc", "abc"},
		"oldest":         {"the oldest object is dropped first", 3, "abcd", "bcd"},
		"more":           {"objects are dropped in the order of their last entries", 3, "abcdef", "def"},
		"used again":     {"a new entry of the oldest object keeps it", 3, "abcad", "acd"},
		"in the middle":  {"objects are dropped by their last entry, not their first", 3, "abcbdef", "def"},
		"middle is kept": {"a new entry of a middle object keeps it", 3, "abcbde", "bde"},
		"newest":         {"new entries of the newest object drop no others", 3, "abcccd", "bcd"},
		"one":            {"a limit of one keeps the latest object", 1, "ab", "b"},
		"one again":      {"a repeated entry of the only object keeps it", 1, "aab", "b"},
		"one back":       {"an object that was dropped can return", 1, "aba", "a"},
		"two":            {"two objects that alternate are both kept", 2, "abab", "ab"},
		"two of three":   {"of two objects the one with the older entry is dropped", 2, "abac", "ac"},
		"forgotten":      {"an object that was dropped returns as the newest", 2, "abca", "ac"},
		"all again":      {"entries in reverse order reverse the order of dropping", 3, "abccbad", "abd"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{Objects: c.limit})
			for _, name := range strings.Split(c.happen, "") {
				widgetsOf(j).ForObject(types.NamespacedName{Namespace: "ns", Name: name}, "").RecordEvent("ADDED", "1")
			}
			var known strings.Builder
			for _, name := range strings.Split("abcdef", "") {
				if len(explainObject(t, j, types.NamespacedName{Namespace: "ns", Name: name}).History) > 0 {
					known.WriteString(name)
				}
			}
			if known.String() != c.want {
				t.Errorf("%s: want %s kept, got %s", c.reason, c.want, known.String())
			}
		})
	}
}

// TestObjectsByDefault shows that the default limit applies to limits of zero and below.
func TestObjectsByDefault(t *testing.T) {
	for _, limit := range []int{0, -1} {
		j := newServingJournal(journal.RetentionLimits{Objects: limit})
		for i := range journal.DefaultObjects + 1 {
			widgetsOf(j).ForObject(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i)}, "").RecordEvent("ADDED",
				"1")
		}
		for name, want := range map[string]int{"0": 0, "1": 1, fmt.Sprint(journal.DefaultObjects): 1} {
			if n := len(explainObject(t, j, types.NamespacedName{Namespace: "ns", Name: name}).History); n != want {
				t.Errorf("limit %d: want %d entries of object %s, got %d", limit, want, name, n)
			}
		}
	}
}

// TestIncarnations shows that objects are identified by kind, namespace and name. A new object of the same name
// continues the page of the old one.
func TestIncarnations(t *testing.T) {
	j := newServingJournal(journal.RetentionLimits{})
	kind := widgetsOf(j)
	kind.ForObject(w1, "u1").RecordEvent("ADDED", "1")
	kind.ForObject(w1, "u1").RecordEvent("DELETED", "2")
	if uid := explainObject(t, j, w1).UID; uid != "u1" {
		t.Errorf("want a deleted object with uid u1, got %q", uid)
	}
	kind.ForObject(w1, "u2").RecordEvent("ADDED", "3")
	kind.ForObject(w1, "").RecordHold(journal.HeldError, nil, noTime)
	e := explainObject(t, j, w1)
	if e.UID != "u2" || len(e.History) != 3 {
		t.Errorf("a new object must continue the page, and an entry without uid must keep the uid: "+
			"want 3 entries, the last of u2, got %d of %q", len(e.History), e.UID)
	}
	j.ForKind(widgets.GroupVersion().WithKind("Gadget").GroupKind(), nil).ForObject(w1, "u3").RecordEvent("ADDED", "4")
	kind.ForObject(types.NamespacedName{Namespace: "other", Name: "w1"}, "u4").RecordEvent("ADDED", "5")
	if e := explainObject(t, j, w1); e.UID != "u2" || len(e.History) != 3 {
		t.Errorf("entries of other objects appear in this one: %v", e.History)
	}
}

// TestObjectOfABody shows that an object is identified by its body.
func TestObjectOfABody(t *testing.T) {
	cases := map[string]struct {
		reason   string
		metadata any
		object   types.NamespacedName
		uid      types.UID
	}{
		"all": {"a full body identifies the object",
			map[string]any{"namespace": "ns", "name": "w1", "uid": "u1"}, w1, "u1"},
		"no uid": {"a body without uid identifies the object by its name",
			map[string]any{"namespace": "ns", "name": "w1"}, w1, ""},
		"malformed": {"malformed metadata do not cause a panic",
			"nonsense", types.NamespacedName{Namespace: "", Name: ""}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := journal.New(journal.RetentionLimits{})
			served := newServingState()
			served.Kinds[0].Namespaced = c.object.Namespace != ""
			j.SetLive(served)
			o := widgetsOf(j).ForBody(map[string]any{"metadata": c.metadata})
			d := o.StartEvaluation(&cause.Cause{Reason: cause.Create})
			d.AddToJournal()
			if e := explainObject(t, j, c.object); e.UID != c.uid || len(e.History) != 1 {
				t.Errorf("%s: want one entry of %q, got %d of %q", c.reason, c.uid, len(e.History), e.UID)
			}
		})
	}
}

// TestOtherLimits shows that limits can change while the journal is used, and that a nil journal ignores them.
func TestOtherLimits(t *testing.T) {
	(*journal.Journal)(nil).SetLimits(journal.RetentionLimits{Objects: 1})
	j := newServingJournal(journal.RetentionLimits{})
	name := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i)} }
	for i := range 5 {
		widgetsOf(j).ForObject(name(i), "").RecordEvent("ADDED", "1")
		widgetsOf(j).ForObject(name(i), "").RecordEvent("MODIFIED", "1")
		widgetsOf(j).ForObject(name(i), "").RecordEvent("DELETED", "1")
	}
	j.SetLimits(journal.RetentionLimits{Objects: 2, Entries: 2})
	widgetsOf(j).ForObject(name(3), "").RecordEvent("ADDED", "2")
	widgetsOf(j).ForObject(name(9), "").RecordEvent("ADDED", "2")
	for i, want := range map[int]int{0: 0, 1: 0, 2: 0, 3: 3, 4: 0, 9: 1} {
		if n := len(explainObject(t, j, name(i)).History); n != want {
			t.Errorf("want %d entries of object %d, got %d", want, i, n)
		}
	}
	widgetsOf(j).ForObject(name(9), "").RecordHold(journal.HeldError, nil, time.Time{})
	widgetsOf(j).ForObject(name(9), "").RecordHold(journal.HeldBlocked, nil, time.Time{})
	if n := len(explainObject(t, j, name(9)).History); n != 2 {
		t.Errorf("want 2 entries, got %d", n)
	}
}
