package execution_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

func TestPickByFunction(t *testing.T) {
	due := []*execution.HandlerState{
		{ID: "a", Retries: 2, Started: time.Unix(1, 0)}, {ID: "b", Started: time.Unix(2, 0)}, {ID: "c"},
	}
	type list = []handlers.DueHandler
	for name, tc := range map[string]struct {
		reason string
		pick   func(due list) list
		want   []string
		wrong  string
	}{
		"Order": {
			"the function sets the order", func(due list) list { return list{due[2], due[0]} }, []string{"c", "a"}, "",
		},
		"Own": {
			"only the ids that the function returns count",
			func(list) list { return list{{ID: "b"}} }, []string{"b"}, "",
		},
		"None": {
			"a function that picks no handler is an error",
			func(list) list { return nil }, nil, "none of the 3 that are due",
		},
		"Unknown": {
			"picking another handler is an error",
			func(list) list { return list{{ID: "x"}} }, nil, `"x", which is not due`,
		},
		"Twice": {"picking one twice is an error",
			func(due list) list { return append(due, due[0]) }, nil, `"a" twice`},
		"Panic": {"a function that panics is an error", func(list) list { panic("boo") }, nil, "panic: boo"},
	} {
		var got []string
		var seen list
		picked, err := execution.PickHandlers(t.Context(), handlers.LifecycleFunc(func(
			_ context.Context, due list,
		) list {
			seen = append(list{}, due...)
			return tc.pick(due)
		}), due)
		for _, one := range picked {
			got = append(got, one.ID)
		}
		if d := cmp.Diff(tc.want, got); d != "" || (err != nil) != (tc.wrong != "") ||
			err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %s: error %v, -want, +got:\n%s", name, tc.reason, err, d)
		}
		if d := cmp.Diff(list{
			{ID: "a", Retry: 2, Started: time.Unix(1, 0)}, {ID: "b", Started: time.Unix(2, 0)}, {ID: "c"},
		}, seen); d != "" {
			t.Errorf("%s: -want, +got:\n%s", name, d)
		}
	}
	picked, err := execution.PickHandlers(t.Context(), handlers.LifecycleFunc(func(context.Context, list) list {
		t.Error("the function was called without due handlers")
		return nil
	}), nil)
	if picked != nil || err != nil {
		t.Errorf("got %v, %v", picked, err)
	}
}
