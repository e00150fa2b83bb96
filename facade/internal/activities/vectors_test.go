package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
)

// activityByDecorator maps the decorators of Kopf to names of activities.
var activityByDecorator = map[string]string{
	"startup": activities.Startup, "cleanup": activities.Cleanup, "login": activities.Login, "probe": activities.Probe,
	"authentication": activities.Login,
}

func TestVectorsActivity(t *testing.T) {
	vectors.Run(t, "activity", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Bubble(t, func(t *testing.T) {
			if got := any(runActivityVector(t, input)); !diff.Equal(want.Value, got) {
				t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, got))
			}
		})
	})
}

// runActivityVector runs one activity on virtual time, and returns the calls with their times, the results and the
// error.
func runActivityVector(t *testing.T, input vectors.Fields) map[string]any {
	vectors.Known(t, input, "activity", "handlers", "fallbacks")
	began, calls := time.Now(), []any{}
	since := func() float64 { return time.Since(began).Seconds() }
	activity := activities.ActivityHandlers{Name: activityByDecorator[input.Text("activity", "")]}
	add := func(id string, policy handlers.Policy, behave func(call int) (any, error)) {
		n := -1
		activity.Handlers = append(activity.Handlers, acting(activity.Name, id, policy,
			func(_ context.Context, call *handlers.Invocation) (any, error) {
				calls = append(calls, map[string]any{"t": since(), "id": id, "retry": int64(call.Retry)})
				n++
				return behave(n)
			}))
	}
	for _, item := range input.List("handlers") {
		d := vectors.Known(t, item, "on", "id", "behave", "retries", "errors", "timeout")
		if activityByDecorator[d.Text("on", "")] == activity.Name {
			add(d.Text("id", ""), declared.Policy(t, d), behaviorOf(t, d.List("behave")))
		}
	}
	if len(activity.Handlers) == 0 { // registered handlers replace Kopf's own
		for _, item := range input.List("fallbacks") {
			id, _ := item.(string)
			add(id, handlers.Policy{}, func(int) (any, error) { return id, nil })
		}
	}
	results, err := activity.Run(t.Context())
	got := map[string]any{"calls": calls, "results": results, "error": nil, "ended": since()}
	if err != nil {
		got["results"], got["error"] = nil, "ActivityError"
	}
	return got
}

// behaviorOf returns a function that follows the list, one item per call, and repeats the last item.
func behaviorOf(t *testing.T, list []any) func(call int) (any, error) {
	return func(call int) (any, error) {
		behave := vectors.Known(t, list[min(call, len(list)-1)], "takes", "return", "raise", "delay", "message")
		if takes := vectors.Number(t, behave, "takes"); takes != nil {
			time.Sleep(time.Duration(*takes * float64(time.Second)))
		}
		return behave["return"], declared.Raise(t, behave)
	}
}

func acting(
	name, id string, policy handlers.Policy, call func(context.Context, *handlers.Invocation) (any, error),
) *adapters.HandlerChain {
	return adapters.New(&handlers.Handler{
		ID: id, Family: handlers.Activity, Policy: policy, Activity: name, ActivityFunc: call,
	}, nil)
}
