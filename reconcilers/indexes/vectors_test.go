package indexes_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
)

// indexTest is one case of the vectors: its handlers, and the results of the present event.
type indexTest struct {
	t         *testing.T
	startTime time.Time
	results   vectors.Fields
	calls     []any
}

func TestVectorsIndex(t *testing.T) {
	vectors.Run(t, "index", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "handlers", "events")
		vectors.Bubble(t, func(t *testing.T) {
			p := &indexTest{t: t, startTime: time.Now()}
			own, indices := p.handlers(input.List("handlers"))
			x := &indexes.Indexer{}
			feed := x.BeginFeed(indexes.IndexTask{Handlers: own, Log: logr.Discard()})
			got := []any{}
			for _, item := range input.List("events") {
				e := vectors.Known(t, item, "type", "object", "results", "at")
				if at := declared.Seconds(t, e, "at"); at != nil {
					time.Sleep(time.Until(p.startTime.Add(*at)))
				}
				p.results, p.calls = e.Mapping("results"), []any{}
				feed.HandleEvent(e.Text("type", ""), compacttest.NewObject(e.Mapping("object")))
				got = append(got, map[string]any{"calls": p.calls, "indices": content(indices)})
			}
			if !diff.Equal(want.Value, any(got)) {
				t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, any(got)))
			}
		})
	})
}

func (p *indexTest) handlers(list []any) (own []*adapters.HandlerChain, indices map[string]*indexes.ObjectIndex) {
	p.t.Helper()
	all, err := declared.Handlers(p.t, list, declared.Resource(p.t, nil))
	if err != nil {
		p.t.Fatal(err)
	}
	indices = map[string]*indexes.ObjectIndex{}
	for _, d := range all {
		if !d.SelectsServed || d.Handler.Family != handlers.Indexing {
			continue
		}
		h := d.Handler
		indices[h.ID] = indexes.New()
		h.Index = &handlers.IndexWork{Store: indices[h.ID], Call: p.call(h.ID)}
		own = append(own, adapters.New(h, nil))
	}
	return own, indices
}

// behaviour returns the behaviour of the function at the present event.
func (p *indexTest) behaviour(id string) vectors.Fields {
	if p.results[id] == nil {
		return vectors.Fields{}
	}
	return vectors.Known(p.t, p.results[id], "return", "raise", "delay", "message", "takes")
}

func (p *indexTest) call(id string) handlers.IndexFunc {
	return func(ctx context.Context, call *handlers.Invocation) (map[any]any, bool, error) {
		name, _, _ := unstructured.NestedString(call.Object, "metadata", "name")
		p.calls = append(
			p.calls,
			map[string]any{"id": id, "name": name, "retry": int64(call.Retry), "t": time.Since(p.startTime).Seconds()},
		)
		d := p.behaviour(id)
		if takes := declared.Seconds(p.t, d, "takes"); takes != nil {
			select {
			case <-time.After(*takes):
			case <-ctx.Done():
				return nil, false, ctx.Err()
			}
		}
		if err := declared.Raise(p.t, d); err != nil {
			return nil, false, err
		}
		return entriesOf(d["return"]), false, nil
	}
}

// entriesOf returns the entries of a result: a mapping, pairs with other keys, or one value without a key.
func entriesOf(result any) map[any]any {
	entries := map[any]any{}
	mapping, is := result.(map[string]any)
	switch {
	case result == nil:
	case !is:
		entries[nil] = result
	case mapping["$"] == "pairs":
		items, _ := mapping["items"].([]any)
		for _, item := range items {
			pair, _ := item.([]any)
			entries[text(pair[0])] = pair[1]
		}
	default:
		for key, value := range mapping {
			entries[key] = value
		}
	}
	return entries
}

// text encodes a key that is a list, since Go has no tuples. Numbers are keys by their values.
func text(key any) any {
	if number, whole := key.(int64); whole {
		return float64(number)
	}
	if _, list := key.([]any); !list {
		return key
	}
	data, _ := json.Marshal(key)
	return "tuple " + string(data)
}

func content(indices map[string]*indexes.ObjectIndex) map[string]any {
	all := map[string]any{}
	for id, index := range indices {
		pairs := []any{}
		for _, key := range index.Keys() {
			values := slices.Clone(index.Get(key))
			slices.SortFunc(values, byText)
			if name, isText := key.(string); isText && strings.HasPrefix(name, "tuple ") {
				var list []any
				_ = json.Unmarshal([]byte(strings.TrimPrefix(name, "tuple ")), &list)
				key = list
			}
			pairs = append(pairs, []any{key, values})
		}
		slices.SortFunc(pairs, byText)
		all[id] = pairs
	}
	return all
}

func byText(a, b any) int {
	first, _ := json.Marshal(a)
	second, _ := json.Marshal(b)
	return strings.Compare(string(first), string(second))
}
