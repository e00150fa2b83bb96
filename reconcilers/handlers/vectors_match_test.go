package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// causeOf is the cause of a vector; what it does not say is empty.
func causeOf(t *testing.T, spec any) *cause.Cause {
	t.Helper()
	d := vectors.Known(t, spec, "cause", "body", "reason", "old", "new", "type", "initial", "subresource", "operation", "webhook")
	c := &cause.Cause{
		Reason: cause.Reason(d.Text("reason", "")), Initial: d.Flag("initial"), Type: d.Text("type", ""), Body: d.Mapping("body"),
		Old: map[string]any(d.Mapping("old")), New: map[string]any(d.Mapping("new")),
	}
	deletion, _ := diff.Resolve(c.Body, diff.Path{"metadata", "deletionTimestamp"})
	c.Deleting = deletion != nil
	c.Diff = diff.Compute(d["old"], d["new"])
	return c
}

func TestVectorsFilter(t *testing.T) {
	runVectors(t, "filter", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "handler", "cause")
		all, err := declare(t, []any{input["handler"]}, kopfexamples())
		if err != nil {
			return nil, err
		}
		h, c := all[0].handler, causeOf(t, input["cause"])
		prematch, err := h.Prematch(t.Context(), c)
		if err != nil {
			return nil, err
		}
		match, err := h.Match(t.Context(), c)
		if err != nil {
			return nil, err
		}
		selected := match
		switch h.Family {
		case handlers.Changing:
			chosen, err := handlers.Select(t.Context(), []*handlers.Handler{h}, c)
			if err != nil {
				return nil, err
			}
			selected = len(chosen) == 1
		case handlers.Admitting:
			asked := review(input.Mapping("cause"))
			prematch, match = prematch && h.Covers(asked), match && h.Covers(asked)
			selected = match && h.Answers(asked)
		}
		return map[string]any{"id": h.ID, "prematch": prematch, "match": match, "selected": selected}, nil
	})
}

func review(c vectors.Fields) handlers.Review {
	asked := handlers.Review{Operation: c.Text("operation", ""), Subresource: c.Text("subresource", "")}
	if id, ok := c["webhook"].(string); ok {
		asked.ID = &id
	}
	return asked
}

func TestVectorsSelection(t *testing.T) {
	runVectors(t, "selection", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "handlers", "cause", "excluded")
		declared, err := declare(t, input.List("handlers"), kopfexamples())
		if err != nil {
			return nil, err
		}
		var all []*handlers.Handler
		extra := []any{}
		for _, d := range declared {
			if !excluded(input.List("excluded"), d.handler.ID) {
				all = append(all, d.handler)
			}
			if d.field != nil && d.family == familyOf(input.Mapping("cause")) {
				extra = append(extra, keysOf(d.field))
			}
		}
		got, err := selection(t, all, input.Mapping("cause"))
		if err == nil {
			got["extra_fields"] = sorted(unique(extra))
		}
		return got, err
	})
}

func selection(t *testing.T, all []*handlers.Handler, spec vectors.Fields) (map[string]any, error) {
	t.Helper()
	c := causeOf(t, map[string]any(spec))
	family := familyOf(spec)
	if family != handlers.Changing {
		matching, err := handlers.Matching(t.Context(), all, family, c)
		got := map[string]any{"handlers": ids(matching)}
		if family == handlers.Spawning {
			got["requires_finalizer"] = len(matching) > 0
		}
		return got, err
	}
	selected, err := handlers.Select(t.Context(), all, c)
	if err != nil {
		return nil, err
	}
	interest, err := handlers.InterestIn(t.Context(), all, c)
	if err != nil {
		return nil, err
	}
	owned, known := []any{}, map[[2]any]bool{}
	for _, h := range all {
		if key := [2]any{h.ID, h.Function}; h.Family == handlers.Changing && !known[key] {
			owned, known[key] = append(owned, h.ID), true
		}
	}
	return map[string]any{
		"handlers": ids(selected), "requires_finalizer": interest.Finalizer, "prematch": interest.Changing, "owned": owned,
	}, nil
}

// familyOf is what the cause is for.
func familyOf(spec vectors.Fields) handlers.Family {
	return map[string]handlers.Family{"spawning": handlers.Spawning, "watching": handlers.Watching}[spec.Text("cause", "")]
}

// sorted is for fields, the order of which says nothing.
func sorted(list []any) []any {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

func excluded(list []any, id string) bool {
	for _, item := range list {
		if item == id {
			return true
		}
	}
	return false
}

func keysOf(path diff.Path) []any {
	keys := []any{}
	for _, key := range path {
		keys = append(keys, key)
	}
	return keys
}

func unique(list []any) []any {
	kept := []any{}
	for _, item := range list {
		known := false
		for _, other := range kept {
			known = known || diff.Equal(item, other)
		}
		if !known {
			kept = append(kept, item)
		}
	}
	return kept
}

// Names of Python's functions are for information: ids are explicit here.
func TestVectorsHandlerID(t *testing.T) {
	runVectors(t, "handler_id", func(t *testing.T, input vectors.Fields) (any, error) {
		d := vectors.Known(t, input, "on", "fn", "id", "field", "callable", "file", "line", "sub", "parent")
		if d["callable"] != nil {
			t.Skip("how Python's functions are called (the case is a reference)")
		}
		id := d.Text("id", d.Text("fn", ""))
		if parent, ok := d["parent"].(string); ok {
			return map[string]any{"id": handlers.SubID(parent, id)}, nil
		}
		return map[string]any{"id": handlers.FullID(id, families[d.Text("on", "")], pathOf(t, d["field"]))}, nil
	})
}
