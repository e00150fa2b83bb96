package indexes_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

type later struct {
	error
	delay time.Duration
}

func (e later) RetryAfter() time.Duration { return e.delay }

type never struct{ error }

func (never) Permanent() bool { return true }

// play is one case: its handlers, and the event that is being played.
type play struct {
	t       *testing.T
	began   time.Time
	results vectors.Fields
	calls   []any
}

func TestVectorsIndex(t *testing.T) {
	vectors.Run(t, "index", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "handlers", "events")
		vectors.Bubble(t, func(t *testing.T) {
			p := &play{t: t, began: time.Now()}
			own, indices := p.handlers(input.List("handlers"))
			x := &indexes.Indexer{}
			x.Begin(own, 0, logr.Discard())
			got := []any{}
			for _, item := range input.List("events") {
				e := vectors.Known(t, item, "type", "object", "results", "at")
				if e["at"] != nil {
					time.Sleep(time.Until(p.began.Add(seconds(e["at"]))))
				}
				p.results, p.calls = e.Mapping("results"), []any{}
				x.Seen(e.Text("type", ""), &unstructured.Unstructured{Object: e.Mapping("object")})
				got = append(got, map[string]any{"calls": p.calls, "indices": content(indices)})
			}
			if !diff.Equal(want.Value, any(got)) {
				t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, any(got)))
			}
		})
	})
}

func (p *play) handlers(list []any) (own []*handlers.Handler, indices map[string]*indexes.Index) {
	indices = map[string]*indexes.Index{}
	for _, item := range list {
		d := vectors.Known(p.t, item, "on", "id", "labels", "errors", "retries", "backoff")
		h := &handlers.Handler{ID: d.Text("id", ""), Family: handlers.Indexing, Policy: handlers.Policy{Errors: map[string]handlers.ErrorsMode{
			"IGNORED": handlers.ErrorsIgnored, "TEMPORARY": handlers.ErrorsTemporary, "PERMANENT": handlers.ErrorsPermanent,
		}[d.Text("errors", "")]}}
		if retries, given := d["retries"].(int64); given {
			h.Policy.Retries = ptr.To(int(retries))
		}
		if d["backoff"] != nil {
			h.Policy.Backoff = ptr.To(seconds(d["backoff"]))
		}
		set := labels.Set{}
		for key := range d.Mapping("labels") {
			set[key] = d.Mapping("labels").Text(key, "")
		}
		if len(set) > 0 {
			h.Filters = []handlers.Filter{handlers.Labels(labels.SelectorFromSet(set))}
		}
		indices[h.ID] = indexes.New()
		h.Index = &handlers.Index{Into: indices[h.ID], Call: p.call(h.ID)}
		own = append(own, h)
	}
	return own, indices
}

func (p *play) call(id string) handlers.IndexFunc {
	return func(_ context.Context, call *handlers.Call) (map[any]any, bool, error) {
		name, _, _ := unstructured.NestedString(call.Object, "metadata", "name")
		p.calls = append(p.calls, map[string]any{"id": id, "name": name, "retry": int64(call.Retry), "t": time.Since(p.began).Seconds()})
		d := vectors.Known(p.t, map[string]any(p.results.Mapping(id)), "return", "raise", "delay", "message")
		err := errors.New(d.Text("message", "failed"))
		switch d.Text("raise", "") {
		case "temporary":
			return nil, false, later{err, seconds(d["delay"])}
		case "permanent":
			return nil, false, never{err}
		case "arbitrary":
			return nil, false, err
		}
		return entriesOf(d["return"]), false, nil
	}
}

// entriesOf is a result as the function gives it: a mapping, pairs with other keys, or one value under no key.
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

// text stands for a key that is a list: Go has no tuples.
func text(key any) any {
	if _, list := key.([]any); !list {
		return key
	}
	data, _ := json.Marshal(key)
	return "tuple " + string(data)
}

func content(indices map[string]*indexes.Index) map[string]any {
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

func seconds(value any) time.Duration {
	switch n := value.(type) {
	case int64:
		return time.Duration(n) * time.Second
	case float64:
		return time.Duration(n * float64(time.Second))
	default:
		return 0
	}
}
