package indexes_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

func objectOf(uid string) *compact.CachedObject {
	return compacttest.NewObject(map[string]any{"metadata": map[string]any{"name": uid, "uid": uid}})
}

// indexing returns an index with its handler.
func indexing(call handlers.IndexFunc) (*indexes.ObjectIndex, *handlers.Handler) {
	index := indexes.New()
	return index, &handlers.Handler{
		ID:     "i",
		Family: handlers.Indexing,
		Index:  &handlers.IndexWork{Store: index, Call: call},
	}
}

// TestIndexFunctionsThatMisbehave shows that a failure of an index function is logged with the object and the handler,
// that the entries are kept, and that the informer continues.
func TestIndexFunctionsThatMisbehave(t *testing.T) {
	tests := map[string]struct {
		reason string
		call   handlers.IndexFunc
		want   string
	}{
		"Panic": {
			"a panic does not end the informer",
			func(context.Context, *handlers.Invocation) (map[any]any, bool, error) { panic("boo") }, "panic: boo",
		},
		"Goexit": {"an ended goroutine does not end the informer", func(
			context.Context, *handlers.Invocation) (map[any]any, bool, error,
		) {
			runtime.Goexit()
			return nil, false, nil
		}, "ended its goroutine"},
		"Key": {"a key that is not comparable does not end the informer",
			func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
				return map[any]any{any([]int{1}): 1}, false, nil
			}, "unhashable"},
		"Slow": {"a slow function is logged, because all events of the kind wait for it",
			func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
				time.Sleep(time.Second)
				return nil, true, nil
			}, "is slow"},
		"Filter": {"a failing filter is logged and keeps the entries", nil, "cannot tell"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := ""
				call := func(context.Context, *handlers.Invocation) (map[any]any, bool, error) {
					return map[any]any{"k": 1}, false, nil
				}
				index, h := indexing(
					func(ctx context.Context, c *handlers.Invocation) (map[any]any, bool, error) {
						return call(ctx, c)
					},
				)
				failing := false
				h.Filters = []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) {
					if failing {
						return false, errors.New("cannot tell")
					}
					return true, nil
				}}
				x := &indexes.Indexer{}
				feed := x.BeginFeed(indexes.IndexTask{
					Handlers: []*adapters.HandlerChain{adapters.New(h, nil)},
					Log:      funcr.New(func(_, line string) { said += line }, funcr.Options{}),
				})
				feed.HandleEvent("ADDED", objectOf("a"))
				if failing = tc.call == nil; !failing {
					call = tc.call
				}
				feed.HandleEvent("MODIFIED", objectOf("a"))
				if index.Count("k") == 0 {
					t.Errorf("%s: the entries are gone", tc.reason)
				}
				for _, want := range []string{tc.want, `"name"="a"`, `"handler"`} {
					if !strings.Contains(said, want) {
						t.Errorf("%s: want %q in the log, got: %s", tc.reason, want, said)
					}
				}
			})
		})
	}
}

// nilError is the type of a nil pointer in an error interface, a common mistake.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// evil is an error whose RetryAfter method panics.
type evil struct{ *nilError }

func (evil) RetryAfter() time.Duration { panic("no idea when") }

// TestIndexFunctionsWithErrorsThatPanic shows that errors whose methods panic are logged, and that the informer
// continues.
func TestIndexFunctionsWithErrorsThatPanic(t *testing.T) {
	for want, err := range map[string]error{
		"a nil *indexes_test.nilError": (*nilError)(nil), "panic: no idea when": evil{},
	} {
		said := ""
		_, h := indexing(
			func(context.Context, *handlers.Invocation) (map[any]any, bool, error) { return nil, false, err },
		)
		x := &indexes.Indexer{}
		feed := x.BeginFeed(indexes.IndexTask{
			Handlers: []*adapters.HandlerChain{adapters.New(h, nil)},
			Log:      funcr.New(func(_, line string) { said += line }, funcr.Options{}),
		})
		feed.HandleEvent("ADDED", objectOf("a"))
		if !strings.Contains(said, want) || !strings.Contains(said, `"name"="a"`) {
			t.Errorf("want %q with the object, got %s", want, said)
		}
	}
}

// TestIndexerForgetsWhatWasMissed shows that an object that a later first list lacks is removed.
func TestIndexerForgetsWhatWasMissed(t *testing.T) {
	index, h := indexing(func(_ context.Context, c *handlers.Invocation) (map[any]any, bool, error) {
		return map[any]any{(&unstructured.Unstructured{Object: c.Object}).GetName(): 1}, false, nil
	})
	x := &indexes.Indexer{}
	for _, listing := range []string{"a b", "b c"} {
		feed := x.BeginFeed(indexes.IndexTask{Handlers: []*adapters.HandlerChain{adapters.New(h, nil)},
			Log: logr.Discard()})
		for name := range strings.FieldsSeq(listing) {
			feed.HandleEvent("", objectOf(name))
		}
		feed.FinishList("")
	}
	if index.Count("a") > 0 || index.Count("b") == 0 || index.Count("c") == 0 {
		t.Errorf("got %v", index.Keys())
	}
}
