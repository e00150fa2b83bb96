package adapters_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
)

// causeOf returns the cause of a vector; missing fields are empty.
func causeOf(t *testing.T, spec any) *cause.Cause {
	t.Helper()
	d := vectors.Known(t, spec, "cause", "body", "reason", "old", "new", "type", "event", "initial", "subresource",
		"operation",
		"webhook", "diff")
	c := &cause.Cause{
		Reason: cause.Reason(
			d.Text("reason", ""),
		), Initial: d.Flag("initial"), EventType: d.Text("type", ""), Object: jsontext.NewFromValue(d.Mapping("body")),
		Old: map[string]any(d.Mapping("old")), New: map[string]any(d.Mapping("new")),
	}
	deletion, _ := diff.ResolvePath(c.Body(), diff.Path{"metadata", "deletionTimestamp"})
	c.Deleting = deletion != nil
	c.Diff = diff.Compute(d["old"], d["new"])
	return withReason(c, c.Reason)
}

func TestVectorsFilter(t *testing.T) {
	runVectors(t, "filter", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "handler", "cause", "resource")
		all, err := declared.Handlers(t, []any{input["handler"]}, declared.Resource(t, input["resource"]))
		if err != nil {
			return nil, err
		}
		h := all[0].Handler
		prematch, match, selected, err := judged(t, all[0], input)
		return map[string]any{"id": h.ID, "prematch": prematch, "match": match, "selected": selected}, err
	})
}

func judged(t *testing.T, d declared.Declared, input vectors.Fields) (prematch, match, selected bool, err error) {
	t.Helper()
	h, c := d.Handler, causeOf(t, input["cause"])
	if !d.SelectsServed {
		return false, false, false, nil
	}
	if _, prematch, err = h.MatchesObject(t.Context(), c); err != nil {
		return false, false, false, err
	}
	if match, err = matches(t, h, c); err != nil {
		return false, false, false, err
	}
	switch h.Family {
	case handlers.Changing:
		chosen, err := adapters.Select(t.Context(), newChains(h), c, nil)
		return prematch, match, len(chosen) == 1, err
	case handlers.Admitting:
		asked := review(input.Mapping("cause"))
		prematch, match = prematch && h.AcceptsSubresource(asked), match && h.AcceptsSubresource(asked)
		return prematch, match, match && h.AcceptsRequest(asked), nil
	default:
		return prematch, match, match, nil
	}
}

// matches returns whether the handler would be selected, for any reason.
func matches(t *testing.T, h *handlers.Handler, c *cause.Cause) (bool, error) {
	t.Helper()
	anyReason := *h
	anyReason.Reason, anyReason.Initial = "", false
	question := execution.Attempt{Call: handlers.Invocation{Cause: c}}
	return adapters.New(&anyReason, nil).Ask(t.Context(), &question, execution.Selection)
}

func review(c vectors.Fields) *handlers.AdmissionRequest {
	asked := &handlers.AdmissionRequest{
		Type: c.Text("reason", ""), Operation: c.Text("operation", ""), Subresource: c.Text("subresource", ""),
	}
	if id, ok := c["webhook"].(string); ok {
		asked.ID = &id
	}
	return asked
}

func TestVectorsSelection(t *testing.T) {
	runVectors(t, "selection", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "handlers", "cause", "excluded", "resource")
		all, err := declared.Handlers(t, input.List("handlers"), declared.Resource(t, input["resource"]))
		if err != nil {
			return nil, err
		}
		family := familyOf(t, input.Mapping("cause"))
		var mine []*handlers.Handler
		extra := []any{}
		for _, d := range all {
			if !d.SelectsServed {
				continue
			}
			if !slices.Contains(input.List("excluded"), any(d.Handler.ID)) {
				mine = append(mine, d.Handler)
			}
			if field := any(
				keysOf(d.Handler.Field),
			); d.Handler.Field != nil && d.Handler.Family == family && !contains(extra, field) {
				extra = append(extra, field)
			}
		}
		got, err := selection(t, mine, family, input)
		if err == nil {
			got["extra_fields"] = sorted(extra)
		}
		return got, err
	})
}

func selection(
	t *testing.T, all []*handlers.Handler, family handlers.Family, input vectors.Fields,
) (map[string]any, error) {
	t.Helper()
	c := causeOf(t, input["cause"])
	if family != handlers.Changing {
		matching, err := adapters.Select(t.Context(), of(family, all), c, nil)
		got := map[string]any{"handlers": ids(matching)}
		if family == handlers.Background {
			got["requires_finalizer"] = len(matching) > 0
		}
		return got, err
	}
	selected, err := adapters.Select(t.Context(), of(family, all), c, nil)
	if err != nil {
		return nil, err
	}
	interest, err := adapters.InterestIn(t.Context(), of(family, all), c, nil)
	if err != nil {
		return nil, err
	}
	owned, known := []any{}, map[[2]any]bool{}
	for _, h := range all {
		if key := [2]any{h.ID, h.FunctionKey}; h.Family == handlers.Changing && !known[key] {
			owned, known[key] = append(owned, h.ID), true
		}
	}
	return map[string]any{
		"handlers": ids(selected), "requires_finalizer": interest.NeedsFinalizer, "prematch": interest.HasChangeHandler,
		"owned": owned,
	}, nil
}

// familyOf returns the family of the cause.
func familyOf(t *testing.T, spec vectors.Fields) handlers.Family {
	t.Helper()
	family, known := map[string]handlers.Family{
		"": handlers.Changing, "changing": handlers.Changing, "spawning": handlers.Background,
		"watching": handlers.Watching,
		"indexing": handlers.Indexing, "webhook": handlers.Admitting, "webhooks": handlers.Admitting,
	}[spec.Text("cause", "")]
	if !known {
		t.Fatalf("the harness does not support the cause %v", spec["cause"])
	}
	return family
}

// sorted sorts fields whose order is not significant.
func sorted(list []any) []any {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

func contains(list []any, wanted any) bool {
	return slices.ContainsFunc(list, func(item any) bool { return diff.Equal(item, wanted) })
}
