package indexes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// TestAttemptsBeginAnewAfterASuccess shows that attempts are counted from zero after a success.
func TestAttemptsBeginAnewAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var retries []int
		fails := true
		_, h := indexing(func(_ context.Context, c *handlers.Invocation) (map[any]any, bool, error) {
			retries = append(retries, c.Retry)
			if fails {
				return nil, false, errors.New("not yet")
			}
			return map[any]any{"k": 1}, false, nil
		})
		h.Policy.Errors = handlers.ErrorsTemporary
		x := &indexes.Indexer{}
		feed := x.BeginFeed(indexes.IndexTask{
			Handlers: []*adapters.HandlerChain{adapters.New(h, nil)}, Backoff: time.Second,
			Log: logr.Discard(),
		})
		for _, fails = range []bool{true, true, false, true, false} {
			feed.HandleEvent("MODIFIED", objectOf("a"))
			time.Sleep(time.Minute)
		}
		if d := cmp.Diff([]int{0, 1, 2, 0, 1}, retries); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestFiltersSeeDeletions shows that filters see whether an object is being deleted, and that only slow functions are
// logged, since all others wait for them.
func TestFiltersSeeDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, took := "", time.Duration(0)
		var deleting []bool
		_, h := indexing(func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
			time.Sleep(took)
			return nil, true, nil
		})
		h.Filters = []handlers.Filter{func(_ context.Context, c *cause.Cause) (bool, error) {
			deleting = append(deleting, c.Deleting)
			return true, nil
		}}
		x := &indexes.Indexer{}
		feed := x.BeginFeed(indexes.IndexTask{
			Handlers: []*adapters.HandlerChain{adapters.New(h, nil)},
			Log:      funcr.New(func(_, line string) { said += line }, funcr.Options{}),
		})
		feed.HandleEvent("ADDED", objectOf("a"))
		took = 100 * time.Millisecond
		feed.HandleEvent("MODIFIED", compacttest.DeletingCopy(objectOf("a")))
		if d := cmp.Diff([]bool{false, true}, deleting); d != "" || strings.Contains(said, "slow") {
			t.Errorf("want nothing about 100 ms in the log, got %q; deletions: -want, +got:\n%s", said, d)
		}
	})
}

func TestSeenTellsWhetherTheFeedCounts(t *testing.T) {
	f := newFeedTest()
	f.play("A begin; A a1; B begin; B a5")
	for i, step := range []struct {
		reason, feed, event string
		want                bool
	}{
		{"the earlier feed counts until the later one has listed", "A", "MODIFIED", true},
		{"the later feed counts if it is ahead", "B", "MODIFIED", true},
		{"a deletion counts for the later feed", "B", "DELETED", true},
	} {
		if got := f.feeds[step.feed].HandleEvent(step.event, objectOf("a")); got != step.want {
			t.Errorf("step %d: %s: got %v", i, step.reason, got)
		}
	}
	late := compacttest.ChangedCopy(objectOf("l"), func(u *unstructured.Unstructured) { u.SetResourceVersion("5") })
	f.play("A l7")
	if !f.feeds["B"].HandleEvent("MODIFIED", late) || !f.feeds["B"].HandleEvent("MODIFIED", objectOf("z")) {
		t.Error("the later feed does not count for an object that the earlier one knows better or not at all")
	}
	f.play("B listed 9; A end; A end")
	if f.feeds["A"].HandleEvent("MODIFIED", objectOf("a")) {
		t.Error("an ended feed counts")
	}
}

func TestWaitWithoutIndices(t *testing.T) {
	var none *indexes.Readiness
	if !none.Wait(t.Context()) {
		t.Error("Wait of a nil Readiness is false")
	}
	synctest.Test(t, func(t *testing.T) {
		lines := 0
		ctx, stop := context.WithTimeout(
			logf.IntoContext(t.Context(), funcr.New(func(string, string) { lines++ }, funcr.Options{})), time.Hour,
		)
		defer stop()
		indexes.NewReadiness().LogReminders(ctx)
		if lines > 0 {
			t.Errorf("want no line before the indexed resources are known, got %d", lines)
		}
	})
}
