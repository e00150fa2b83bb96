package journal_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// TestAllObjects shows that objects are listed with the newest first, and with the number of their last change.
func TestAllObjects(t *testing.T) {
	j := newServingJournal(journal.RetentionLimits{})
	all := func() (seen []string) {
		last := j.VisitObjects(func(of journal.Key, changed uint64) {
			seen = append(seen, fmt.Sprint(of.Kind, " ", of.Object, " ", changed))
		})
		return append(seen, fmt.Sprint(last, " ", j.VisitObjects(nil)))
	}
	if d := cmp.Diff([]string{"0 0"}, all()); d != "" {
		t.Errorf("an empty journal; -want, +got:\n%s", d)
	}
	for _, name := range []string{"a", "b", "c", "a"} {
		object := w1
		object.Name = name
		widgetsOf(j).ForObject(object, "").RecordEvent("ADDED", "1")
	}
	want := []string{
		"Widget.example.org ns/a 4", "Widget.example.org ns/c 3", "Widget.example.org ns/b 2", "4 4",
	}
	if d := cmp.Diff(want, all()); d != "" {
		t.Errorf("a repeated entry must count as a change; -want, +got:\n%s", d)
	}
}

// TestObjectsThatAreGone shows that an object is gone from its deletion until an object of its name appears.
func TestObjectsThatAreGone(t *testing.T) {
	key := journal.Key{Kind: widgets.GroupKind(), Object: w1}
	hold := func(o journal.ObjectJournal) { o.RecordHold(journal.HeldError, nil, noTime) }
	event := func(kind string) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) { o.RecordEvent(kind, "1") }
	}
	type happening struct {
		uid  types.UID
		what func(journal.ObjectJournal)
	}
	cases := map[string]struct {
		reason   string
		steps    []happening
		entries  int
		wantGone bool
	}{
		"unknown": {"an unknown object is not gone", nil, 0, false},
		"there":   {"an added object is not gone", []happening{{"u1", event("ADDED")}}, 1, false},
		"deleted": {"a deleted object is gone", []happening{{"u1", event("ADDED")}, {"u1", event("DELETED")}}, 2, true},
		"afterwards": {"late entries of a deleted object do not bring it back",
			[]happening{{"u1", event("DELETED")}, {"u1", hold}, {"", hold}}, 2, true},
		"another": {"an entry of a new uid ends the deletion",
			[]happening{{"u1", event("DELETED")}, {"u2", hold}}, 2, false},
		"met again": {"an event after a deletion without uid ends the deletion",
			[]happening{{"", event("DELETED")}, {"", event("ADDED")}}, 2, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			for _, h := range c.steps {
				h.what(widgetsOf(j).ForObject(w1, h.uid))
			}
			if entries, _, gone, _ := j.EntriesOf(key); len(entries) != c.entries || gone != c.wantGone {
				t.Errorf("%s: want %d entries, gone: %t; got %v, %t", c.reason, c.entries, c.wantGone, entries, gone)
			}
		})
	}
}
