package background_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// TestJournalOfBackground shows the records of daemons and timers: which handlers match, which do not and why, the
// outcome of each call, and the writes.
func TestJournalOfBackground(t *testing.T) {
	fits := true
	matching := []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) { return fits, nil }}
	for name, tc := range map[string]struct {
		reason string
		acts   []handlers.Func
		play   func(w *harness)
		want   []string
	}{
		"Matches": {
			"a matching timer and its retries are recorded",
			[]handlers.Func{func(context.Context, *handlers.Invocation) error {
				return errors.New("boo")
			}, returnResult("fine")},
			func(w *harness) {
				w.runPass()
				time.Sleep(10 * time.Second)
			},
			[]string{
				"look background; h", "call h for timer, attempt 1: failed; retrying: boo, again after 7s",
				"call h for timer, attempt 2: succeeded", "write status.h by h",
			},
		},
		"Unmatched": {
			"a timer that stops matching is recorded with its filter", []handlers.Func{succeed},
			func(w *harness) {
				w.runPass()
				time.Sleep(time.Second)
				fits = false
				w.runPass()
			},
			[]string{
				"look background; h", "call h for timer, attempt 1: succeeded",
				"look background; h not: Filters says filtered out",
			},
		},
		"Refused": {
			"a refused write and its retry are recorded", []handlers.Func{returnResult("fine")},
			func(w *harness) {
				w.writeErrors = []error{errors.New("not now")}
				w.runPass()
				time.Sleep(10 * time.Second)
			},
			[]string{
				"look background; h", "call h for timer, attempt 1: succeeded",
				"write status.h by h: not now", "write status.h by h",
			},
		},
		"Deleted": {
			"a deletion without a running handler is not recorded", []handlers.Func{succeed},
			func(w *harness) {
				metadata, _ := w.body["metadata"].(map[string]any)
				metadata["deletionTimestamp"] = "2000-01-01T00:00:00Z"
				_, _, _ = w.Supervise(w.t.Context(),
					&cause.Cause{Object: jsontext.NewFromValue(w.body), Deleting: true})
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := journaltest.NewReader(t, schema.GroupKind{Group: "example.org", Kind: "Widget"})
				fits = true
				var w *harness
				h := backgroundHandler(&w, handlers.BackgroundOptions{Interval: time.Hour}, tc.acts...)
				h.Filters = matching
				w = newHarnessWith(t, background.KindSettings{HandledKind: kind.HandledKind{Journal: told.Kind}}, h)
				tc.play(w)
				synctest.Wait()
				if d := cmp.Diff(tc.want, told.EntryLines("ns", "a")); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
