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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact/compacttest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// fed is an index of objects with their versions, such as "a5".
type fed struct {
	x     *indexes.Indexer
	index *indexes.Index
	own   []*adapters.Handler
	feeds map[string]*indexes.Feed
}

func newFed() *fed {
	index, h := indexing(func(_ context.Context, c *handlers.Invocation) (map[any]any, bool, error) {
		o := &unstructured.Unstructured{Object: c.Object}
		return map[any]any{o.GetName() + o.GetResourceVersion(): 1}, false, nil
	})
	return &fed{
		x: &indexes.Indexer{}, index: index, own: []*adapters.Handler{adapters.New(h, nil)},
		feeds: map[string]*indexes.Feed{},
	}
}

// play takes steps such as "A begin", "A a5", "A a5 DELETED", "A listed 5", "A end".
func (f *fed) play(steps string) (missed []string) {
	for step := range strings.SplitSeq(steps, "; ") {
		parts := append(strings.Fields(step), "", "")
		feed, what := f.feeds[parts[0]], parts[1]
		switch what {
		case "begin":
			f.feeds[parts[0]] = f.x.Begin(indexes.Task{Handlers: f.own, Log: logr.Discard()})
		case "end":
			feed.End()
		case "listed":
			for _, uid := range feed.Listed(parts[2]) {
				missed = append(missed, string(uid))
			}
		default:
			feed.Seen(parts[2], compacttest.Of(map[string]any{"metadata": map[string]any{
				"name": what[:1], "uid": what[:1], "resourceVersion": what[1:],
			}}))
		}
	}
	slices.Sort(missed)
	return missed
}

func (f *fed) keys() (all []string) {
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
			"the earlier one is all there is until the later one has listed", first + "A c3; A b4 MODIFIED; " +
				"A a5 DELETED", "b4 c3", "",
		},
		"Superseded": {
			"what the earlier one says late is past", first + "B a1; B b2; B c3; B listed 3; A a1; A b9 MODIFIED; " +
				"A c3 DELETED", "a1 b2 c3", "",
		},
		"Missed": {"what nobody has told of any more is gone", first + "B b2; B listed 3", "b2", "a"},
		"EarlierList": {
			"a list from before a change does not undo it", first + "A b7 MODIFIED; B a1; B b2; B listed 5", "a1 b7",
			"",
		},
		"Later": {
			"the later one gets there, too", first + "A b7 MODIFIED; B a1; B b2; B listed 5; B b6 MODIFIED; " +
				"B b7 MODIFIED; B b8 MODIFIED", "a1 b8", "",
		},
		"EarlierListBeforeDeletion": {
			"nor a deletion", first + "A b7 DELETED; B a1; B b2; B listed 5; B b6 MODIFIED", "a1", "",
		},
		"EarlierListBeforeLeaving": {
			"nor that its labels do not match any more", first + "A b7 LEFT; B a1; B b2; B listed 5; B b6 MODIFIED",
			"a1", "",
		},
		"LeftAndBack": {
			"until they do again, unlike what is gone", first + "A b7 LEFT; B a1; B b2; B listed 5; B b8 ADDED",
			"a1 b8", "",
		},
		"EarlierListBeforeCreation": {
			"nor a creation, of which its watch will tell", first + "A c7 ADDED; B a1; B b2; B listed 5",
			"a1 b2 c7", "",
		},
		"CreatedAndDeleted": {
			"which may be followed by a deletion", first + "A c7 ADDED; B a1; B b2; B listed 5; B c7 ADDED; " +
				"B c8 DELETED", "a1 b2", "",
		},
		"DeletedBeforeList": {
			"a list from after a deletion that the earlier one had not heard of", first + "A c3 ADDED; B a1; B b2; " +
				"B listed 5", "a1 b2", "c",
		},
		"EarlierOneBehind": {
			"the earlier one does not undo what the later one knows", first + "B a1; B b6; A b5 MODIFIED; B listed 6",
			"a1 b6", "",
		},
		"EarlierOneBehindDeletion": {
			"nor bring back what is gone", first + "B a1; B b2; B b6 DELETED; A b5 MODIFIED; B listed 6", "a1", "",
		},
		"ComesBack": {
			"a version counts for as long as there are several feeds, and no longer: a server may be set back",
			first + "B a1; B b2; A b9 MODIFIED; B listed 3; B end; C begin; C a1; C b2; C listed 2", "a1 b2", "",
		},
		"LaterOneEnds": {
			"the earlier one goes on alone", first + "B a1; B b6; B end; A b5 MODIFIED; A c7 ADDED", "a1 b5 c7", "",
		},
		"EarlierOneListsLate": {
			"what the later one has told of stays", "A begin; B begin; B a1; B b2; A c1; A listed 1", "a1 b2 c1", "",
		},
		"SetBack": {
			"a feed may go back behind itself, as a server may", first + "B a1; B b6; B b5 MODIFIED; B listed 6",
			"a1 b5", "",
		},
		"EndsTwice": {"the second time it has ended already", first + "B end; B end; A b7 MODIFIED", "a1 b7", ""},
		"NoNumbers": {
			"versions that cannot be compared are none: the list counts", first + "A bx MODIFIED; B a1; B listed y",
			"a1", "b",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFed()
			missed := f.play(tc.steps)
			if d := cmp.Diff(strings.Fields(tc.want), f.keys()); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if got := strings.Join(missed, " "); got != tc.missed {
				t.Errorf("%s: want %q to be missed, got %q", tc.reason, tc.missed, got)
			}
		})
	}
}

// One that stands by waits for the end of others, and hears that they have filled the indices, or cannot.
func TestBeginAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		steps  func(f *fed)
		filled int
		begins bool
	}{
		"Nobody":     {func(*fed) {}, 0, true},
		"Listing":    {func(f *fed) { f.play("A begin; A a1") }, 0, false},
		"Listed":     {func(f *fed) { f.play("A begin; A a1; A listed 1") }, 1, false},
		"Ended":      {func(f *fed) { f.play("A begin; A a1; A listed 1; A end") }, 0, true},
		"Failed":     {func(f *fed) { f.play("A begin"); f.feeds["A"].GiveUp() }, 1, false},
		"TwoOfThem":  {func(f *fed) { f.play("A begin; B begin; A end") }, 0, false},
		"Superseded": {func(f *fed) { f.play("A begin; B begin; B listed 1") }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFed()
				tc.steps(f)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				filled := 0
				feed := f.x.BeginAlone(ctx, indexes.Task{Handlers: f.own, Log: logr.Discard()}, func() { filled++ })
				if began := feed != nil; began != tc.begins || filled != tc.filled {
					t.Errorf("it begins: %v, and hears %d times that all is filled", began, filled)
				}
			})
		})
	}
}

// An index function may take its time, and an operator that stands by has to end meanwhile if it is told to.
func TestBeginAloneBesideASlowFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := indexing(func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
			time.Sleep(time.Hour)
			return nil, false, nil
		})
		f := newFed()
		f.own = []*adapters.Handler{adapters.New(h, nil)}
		f.play("A begin")
		go f.play("A a1")
		time.Sleep(time.Minute)
		defer time.Sleep(time.Hour) // until the function has ended
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		feed := f.x.BeginAlone(ctx, indexes.Task{Handlers: f.own, Log: logr.Discard()}, func() {})
		if took := time.Since(begun); feed != nil || took > time.Minute {
			t.Errorf("it begins: %v, and has waited for %s", feed != nil, took)
		}
	})
}
