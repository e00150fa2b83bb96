package inspection_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
)

// TestRetries shows that the retries of all objects are listed, the earliest first.
func TestRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		soon, late := began.Add(62*time.Second), began.Add(time.Hour)
		want := []inspection.Retry{
			{Kind: "Widget.example.org", Namespace: "default", Name: "soon", Handler: "provision", Purpose: "create",
				Attempt: 1, Error: "no quota", Until: &soon},
			{Kind: "Widget.example.org", Namespace: "default", Name: "late", Handler: "provision", Purpose: "create",
				Attempt: 2, Error: "no quota", Until: &late},
		}
		got := inspection.NewOverview(sortedJournal()).QueryView(inspection.Query{Kind: "Gadget", Limit: 9}).Retries
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the retries differ (-want, +got):\n%s", diff)
		}
	})
}
