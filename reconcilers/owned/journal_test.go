package owned_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// TestJournalOfOwners shows that the journal of the owner records calls for its children and the resulting writes.
func TestJournalOfOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := journaltest.NewReader(t, schema.GroupKind{Group: "example.org", Kind: "Owner"})
		w := newHarness(t, recordingHandler("h", fail(errBad), set("fine")),
			recordingHandler("picky", set("once"), set("twice")))
		w.handling.Journal = told.Kind
		w.route.NoteEvent(ownerIdentity("o"))
		w.deliverEvent(w.pods, owned.Added, child("c", 1, "o"))
		w.answers = []func() (patching.WriteResult, error){
			func() (patching.WriteResult, error) { return patching.WriteResult{}, errBad },
		}
		for range 2 {
			if result := w.handleOwner("o"); result.RequeueAfter != nil {
				time.Sleep(*result.RequeueAfter)
			}
		}
		want := []string{
			"call h for child, attempt 1: failed; retrying: bad, again after 10s",
			"write status.picky by picky: bad",
			"call picky for child, attempt 1: failed; retrying: bad, again after 10s",
			"call h for child, attempt 2: succeeded", "write status.h by h",
			"call picky for child, attempt 2: succeeded (2 times)", "write status.picky by picky",
		}
		if d := cmp.Diff(want, told.EntryLines("ns", "o")); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}
