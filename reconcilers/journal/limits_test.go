package journal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// The objects that nothing has happened to for the longest time are forgotten.
func TestObjectsThatAreForgotten(t *testing.T) {
	cases := map[string]struct {
		reason string
		limit  int
		happen string // to which objects something happens
		want   string // those that are known
	}{
		"room":           {"there is room for all", 3, "abc", "abc"},
		"oldest":         {"the first one goes", 3, "abcd", "bcd"},
		"more":           {"one after another goes", 3, "abcdef", "def"},
		"used again":     {"the first one has moved to the front", 3, "abcad", "acd"},
		"in the middle":  {"the second one has moved to the front", 3, "abcbdef", "def"},
		"middle is kept": {"the second one has moved to the front", 3, "abcbde", "bde"},
		"newest":         {"what is in front stays there", 3, "abcccd", "bcd"},
		"one":            {"the next one takes its place", 1, "ab", "b"},
		"one again":      {"it is in front already", 1, "aab", "b"},
		"one back":       {"it is a new one", 1, "aba", "a"},
		"two":            {"both stay, whatever their order", 2, "abab", "ab"},
		"two of three":   {"the one of the longest time goes", 2, "abac", "ac"},
		"forgotten":      {"it comes back as a new one", 2, "abca", "ac"},
		"all again":      {"the order turns around", 3, "abccbad", "abd"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := kept(journal.Limits{Objects: c.limit})
			for _, name := range strings.Split(c.happen, "") {
				widgetsOf(j).Object(types.NamespacedName{Namespace: "ns", Name: name}, "").Event("ADDED", "1")
			}
			var known strings.Builder
			for _, name := range strings.Split("abcdef", "") {
				if len(explained(t, j, types.NamespacedName{Namespace: "ns", Name: name}).History) > 0 {
					known.WriteString(name)
				}
			}
			if known.String() != c.want {
				t.Errorf("%s: want %s known, got %s", c.reason, c.want, known.String())
			}
		})
	}
}

// Without limits that make sense, there are those by default.
func TestObjectsByDefault(t *testing.T) {
	for _, limit := range []int{0, -1} {
		j := kept(journal.Limits{Objects: limit})
		for i := range journal.DefaultObjects + 1 {
			widgetsOf(j).Object(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i)}, "").Event("ADDED", "1")
		}
		for name, want := range map[string]int{"0": 0, "1": 1, fmt.Sprint(journal.DefaultObjects): 1} {
			if n := len(explained(t, j, types.NamespacedName{Namespace: "ns", Name: name}).History); n != want {
				t.Errorf("limit %d: want %d entries of object %s, got %d", limit, want, name, n)
			}
		}
	}
}

// An object is told apart from others by its kind, namespace and name; one of the same name follows it.
func TestIncarnations(t *testing.T) {
	j := kept(journal.Limits{})
	kind := widgetsOf(j)
	kind.Object(w1, "u1").Event("ADDED", "1")
	kind.Object(w1, "u1").Event("DELETED", "2")
	if uid := explained(t, j, w1).UID; uid != "u1" {
		t.Errorf("an object that is deleted is still known: want uid u1, got %q", uid)
	}
	kind.Object(w1, "u2").Event("ADDED", "3")
	kind.Object(w1, "").Hold(journal.HeldError, nil, noTime)
	e := explained(t, j, w1)
	if e.UID != "u2" || len(e.History) != 3 {
		t.Errorf("the next one goes on with the page, and who does not know the uid changes none: "+
			"want 3 entries, the last of u2, got %d of %q", len(e.History), e.UID)
	}
	j.Kind(widgets.GroupVersion().WithKind("Gadget").GroupKind(), nil).Object(w1, "u3").Event("ADDED", "4")
	kind.Object(types.NamespacedName{Namespace: "other", Name: "w1"}, "u4").Event("ADDED", "5")
	if e := explained(t, j, w1); e.UID != "u2" || len(e.History) != 3 {
		t.Errorf("what happens to others is noted for this one: %v", e.History)
	}
}

// A body says by itself which object it is.
func TestObjectOfABody(t *testing.T) {
	cases := map[string]struct {
		reason   string
		metadata any
		object   types.NamespacedName
		uid      types.UID
	}{
		"all": {"each part counts",
			map[string]any{"namespace": "ns", "name": "w1", "uid": "u1"}, w1, "u1"},
		"no uid":    {"it may be of a handler's own making", map[string]any{"namespace": "ns", "name": "w1"}, w1, ""},
		"malformed": {"it must not panic", "nonsense", types.NamespacedName{Namespace: "", Name: ""}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := journal.New(journal.Limits{})
			served := serving()
			served.Kinds[0].Namespaced = c.object.Namespace != ""
			j.Watch(served)
			o := widgetsOf(j).Of(map[string]any{"metadata": c.metadata})
			d := o.Look(&cause.Cause{Reason: cause.Create})
			d.Note()
			if e := explained(t, j, c.object); e.UID != c.uid || len(e.History) != 1 {
				t.Errorf("%s: want one entry of %q, got %d of %q", c.reason, c.uid, len(e.History), e.UID)
			}
		})
	}
}

// Limits may change while it is used; nobody has to ask whether there is a journal.
func TestOtherLimits(t *testing.T) {
	(*journal.Journal)(nil).Limit(journal.Limits{Objects: 1})
	j := kept(journal.Limits{})
	name := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i)} }
	for i := range 5 {
		widgetsOf(j).Object(name(i), "").Event("ADDED", "1")
		widgetsOf(j).Object(name(i), "").Event("MODIFIED", "1")
		widgetsOf(j).Object(name(i), "").Event("DELETED", "1")
	}
	j.Limit(journal.Limits{Objects: 2, Entries: 2})
	widgetsOf(j).Object(name(3), "").Event("ADDED", "2")
	widgetsOf(j).Object(name(9), "").Event("ADDED", "2")
	for i, want := range map[int]int{0: 0, 1: 0, 2: 0, 3: 3, 4: 0, 9: 1} {
		if n := len(explained(t, j, name(i)).History); n != want {
			t.Errorf("want %d entries of object %d, got %d", want, i, n)
		}
	}
	widgetsOf(j).Object(name(9), "").Hold(journal.HeldError, nil, time.Time{})
	widgetsOf(j).Object(name(9), "").Hold(journal.HeldBlocked, nil, time.Time{})
	if n := len(explained(t, j, name(9)).History); n != 2 {
		t.Errorf("want 2 entries, got %d", n)
	}
}
