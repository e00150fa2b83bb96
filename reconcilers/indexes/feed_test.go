package indexes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// feedTest is an index of objects with their versions, such as "a5", and its feeds.
type feedTest struct {
	indexer       *indexes.Indexer
	index         *indexes.ObjectIndex
	handlerChains []*adapters.HandlerChain
	feeds         map[string]*indexes.Feed
}

func newFeedTest() *feedTest {
	index, h := indexing(func(_ context.Context, c *handlers.Invocation) (map[any]any, bool, error) {
		o := &unstructured.Unstructured{Object: c.Object}
		return map[any]any{o.GetName() + o.GetResourceVersion(): 1}, false, nil
	})
	return &feedTest{
		indexer: &indexes.Indexer{}, index: index, handlerChains: []*adapters.HandlerChain{adapters.New(h, nil)},
		feeds: map[string]*indexes.Feed{},
	}
}

// play runs steps such as "A begin", "A a5", "A a5 DELETED", "A listed 5", "A end", and returns the missed objects.
func (f *feedTest) play(steps string) (missed []string) {
	for step := range strings.SplitSeq(steps, "; ") {
		parts := append(strings.Fields(step), "", "")
		feed, what := f.feeds[parts[0]], parts[1]
		switch what {
		case "begin":
			f.feeds[parts[0]] = f.indexer.BeginFeed(indexes.IndexTask{Handlers: f.handlerChains, Log: logr.Discard()})
		case "end":
			feed.EndFeed()
		case "listed":
			for _, uid := range feed.FinishList(parts[2]) {
				missed = append(missed, string(uid))
			}
		default:
			feed.HandleEvent(parts[2], compacttest.NewObject(map[string]any{"metadata": map[string]any{
				"name": what[:1], "uid": what[:1], "resourceVersion": what[1:],
			}}))
		}
	}
	slices.Sort(missed)
	return missed
}

func (f *feedTest) keys() (all []string) {
	for _, key := range f.index.Keys() {
		all = append(all, key.(string))
	}
	slices.Sort(all)
	return all
}

func TestFeeds(t *testing.T) {
	const first = "A begin; A a1; A b2; A listed 2; B begin; "
	tests := map[string]struct {
		reason, steps string
		want          string
		missed        string
	}{
		"BothCount": {
			"the earlier feed counts until the later one has listed", first + "A c3; A b4 MODIFIED; " +
				"A a5 DELETED", "b4 c3", "",
		},
		"Superseded": {
			"events of the earlier feed are ignored after the list of the later one",
			first + "B a1; B b2; B c3; B listed 3; A a1; A b9 MODIFIED; " +
				"A c3 DELETED", "a1 b2 c3", "",
		},
		"Missed": {"an object that the later list lacks is removed", first + "B b2; B listed 3", "b2", "a"},
		"EarlierList": {
			"a list from before a change does not undo the change",
			first + "A b7 MODIFIED; B a1; B b2; B listed 5", "a1 b7",
			"",
		},
		"Later": {
			"the later feed counts again when it reaches the known version",
			first + "A b7 MODIFIED; B a1; B b2; B listed 5; B b6 MODIFIED; " +
				"B b7 MODIFIED; B b8 MODIFIED", "a1 b8", "",
		},
		"EarlierListBeforeDeletion": {
			"a list from before a deletion does not undo the deletion",
			first + "A b7 DELETED; B a1; B b2; B listed 5; B b6 MODIFIED", "a1", "",
		},
		"EarlierListBeforeLeaving": {
			"a list from before an object left the selector does not bring it back",
			first + "A b7 LEFT; B a1; B b2; B listed 5; B b6 MODIFIED",
			"a1", "",
		},
		"LeftAndBack": {
			"an object that left the selector comes back when it is added",
			first + "A b7 LEFT; B a1; B b2; B listed 5; B b8 ADDED",
			"a1 b8", "",
		},
		"EarlierListBeforeCreation": {
			"a list from before a creation does not remove the object", first + "A c7 ADDED; B a1; B b2; B listed 5",
			"a1 b2 c7", "",
		},
		"CreatedAndDeleted": {
			"the later feed can delete an object that its list lacked",
			first + "A c7 ADDED; B a1; B b2; B listed 5; B c7 ADDED; " +
				"B c8 DELETED", "a1 b2", "",
		},
		"DeletedBeforeList": {
			"a list from after a deletion removes an object of the earlier feed", first + "A c3 ADDED; B a1; B b2; " +
				"B listed 5", "a1 b2", "c",
		},
		"EarlierOneBehind": {
			"the earlier feed does not undo changes of the later one", first + "B a1; B b6; A b5 MODIFIED; B listed 6",
			"a1 b6", "",
		},
		"EarlierOneBehindDeletion": {
			"the earlier feed does not bring back an object that the later one deleted",
			first + "B a1; B b2; B b6 DELETED; A b5 MODIFIED; B listed 6", "a1", "",
		},
		"ComesBack": {
			"versions count only while there are several feeds, because a server may be set back",
			first + "B a1; B b2; A b9 MODIFIED; B listed 3; B end; C begin; C a1; C b2; C listed 2", "a1 b2", "",
		},
		"LaterOneEnds": {
			"the earlier feed continues when the later one ends",
			first + "B a1; B b6; B end; A b5 MODIFIED; A c7 ADDED", "a1 b5 c7", "",
		},
		"EarlierOneListsLate": {
			"a late list of the earlier feed keeps the objects of the later one",
			"A begin; B begin; B a1; B b2; A c1; A listed 1", "a1 b2 c1", "",
		},
		"SetBack": {
			"a feed may go back to an older version of its own", first + "B a1; B b6; B b5 MODIFIED; B listed 6",
			"a1 b5", "",
		},
		"EndsTwice": {"ending a feed twice has no further effect", first + "B end; B end; A b7 MODIFIED", "a1 b7", ""},
		"NoNumbers": {
			"versions that are not numbers are not compared, so the list counts",
			first + "A bx MODIFIED; B a1; B listed y",
			"a1", "b",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFeedTest()
			missed := f.play(tc.steps)
			if d := cmp.Diff(strings.Fields(tc.want), f.keys()); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if got := strings.Join(missed, " "); got != tc.missed {
				t.Errorf("%s: want the missed objects %q, got %q", tc.reason, tc.missed, got)
			}
		})
	}
}

// TestBeginAlone shows that a standby waits for the end of other feeds, and is notified when they have filled the
// indices or given up.
func TestBeginAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		steps  func(f *feedTest)
		filled int
		begins bool
	}{
		"Nobody":     {func(*feedTest) {}, 0, true},
		"Listing":    {func(f *feedTest) { f.play("A begin; A a1") }, 0, false},
		"Listed":     {func(f *feedTest) { f.play("A begin; A a1; A listed 1") }, 1, false},
		"Ended":      {func(f *feedTest) { f.play("A begin; A a1; A listed 1; A end") }, 0, true},
		"Failed":     {func(f *feedTest) { f.play("A begin"); f.feeds["A"].GiveUp() }, 1, false},
		"TwoOfThem":  {func(f *feedTest) { f.play("A begin; B begin; A end") }, 0, false},
		"Superseded": {func(f *feedTest) { f.play("A begin; B begin; B listed 1") }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFeedTest()
				tc.steps(f)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				filled := 0
				feed := f.indexer.BeginAlone(ctx, indexes.IndexTask{Handlers: f.handlerChains, Log: logr.Discard()},
					func() { filled++ })
				if began := feed != nil; began != tc.begins || filled != tc.filled {
					t.Errorf("begins: %v, notified %d times that the indices are filled", began, filled)
				}
			})
		})
	}
}

// TestBeginAloneBesideASlowFunction shows that a standby ends with its context even while an index function is
// running.
func TestBeginAloneBesideASlowFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := indexing(func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
			time.Sleep(time.Hour)
			return nil, false, nil
		})
		f := newFeedTest()
		f.handlerChains = []*adapters.HandlerChain{adapters.New(h, nil)}
		f.play("A begin")
		go f.play("A a1")
		time.Sleep(time.Minute)
		defer time.Sleep(time.Hour) // until the function has ended
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		feed := f.indexer.BeginAlone(ctx, indexes.IndexTask{Handlers: f.handlerChains, Log: logr.Discard()}, func() {})
		if took := time.Since(begun); feed != nil || took > time.Minute {
			t.Errorf("begins: %v, after waiting for %s", feed != nil, took)
		}
	})
}
