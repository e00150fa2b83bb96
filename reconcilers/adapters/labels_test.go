package adapters_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// TestLabels shows that the context of every function has the labels of its kind and handler.
func TestLabels(t *testing.T) {
	var got string
	look := func(ctx context.Context) error {
		kind, known := pprof.Label(ctx, "kind")
		handler, _ := pprof.Label(ctx, "handler")
		got = fmt.Sprintf("%q %t of %q", kind, known, handler)
		return nil
	}
	call := func(ctx context.Context, _ *handlers.Invocation) error { return look(ctx) }
	indexing := &handlers.IndexWork{Call: func(ctx context.Context, _ *handlers.Invocation) (map[any]any, bool, error) {
		return nil, false, look(ctx)
	}}
	acting := func(ctx context.Context, _ *handlers.Invocation) (any, error) { return nil, look(ctx) }
	parent := &handlers.Handler{ID: "fn", Family: handlers.Changing}
	for want, h := range map[string]*handlers.Handler{
		`"Pod" true of "fn"`:   {ID: "fn", Family: handlers.Watching, Call: call},
		`"Pod" true of "d"`:    {ID: "d", Family: handlers.Background, Call: call},
		`"Pod" true of "ix"`:   {ID: "ix", Family: handlers.Indexing, Index: indexing},
		`"Pod" true of "fn/*"`: (&handlers.Handler{ID: "part", Call: call}).AsSubHandler(parent),
		`"" true of "begin"`:   {ID: "begin", Family: handlers.Activity, ActivityFunc: acting},
	} {
		c := &cause.Cause{Object: jsontext.NewFromValue(object{"kind": "Pod"})}
		if h.ActivityFunc != nil {
			c.Object = nil
		}
		adapters.New(h, nil).RunAttempt(t.Context(), execution.NewAttempt(h, c, nil))
		if got != want {
			t.Errorf("the labels are %s, want %s", got, want)
		}
	}
}

// TestLabelsInProfiles shows that goroutines started by a function have its labels in profiles, and that the caller
// does not have them after the call.
func TestLabelsInProfiles(t *testing.T) {
	var during string
	h := &handlers.Handler{ID: "fn", Family: handlers.Watching, Call: func(
		context.Context, *handlers.Invocation,
	) error {
		started, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		go startedByFunction(started, release)
		<-started
		during = goroutine(t, "adapters_test.startedByFunction")
		return nil
	}}
	a := execution.NewAttempt(h, &cause.Cause{Object: jsontext.NewFromValue(object{"kind": "Pod"})}, nil)
	_, err := adapters.New(h, nil).Reconcile(t.Context(), a)
	if want := `{"handler":"fn", "kind":"Pod"}`; err != nil || !strings.Contains(during, want) {
		t.Errorf("want the labels %s; the error is %v, the goroutine:\n%s", want, err, during)
	}
	if after := goroutine(t, "adapters_test.TestLabelsInProfiles"); strings.Contains(after, "labels:") {
		t.Errorf("want no labels after the call:\n%s", after)
	}
}

func startedByFunction(started chan<- struct{}, release <-chan struct{}) { close(started); <-release }

// goroutine returns the goroutine that runs the function, as shown in a profile.
func goroutine(t *testing.T, function string) string {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(text.String(), "\n\n") {
		if strings.Contains(block, function+"+") {
			return block
		}
	}
	t.Errorf("no goroutine has %s:\n%s", function, text.String())
	return ""
}

// TestLabelsOfSeveralKinds shows that each attempt of a handler for several kinds has the label of its own kind.
func TestLabelsOfSeveralKinds(t *testing.T) {
	var got []string
	look := func(ctx context.Context, _ *handlers.Invocation) error {
		kind, _ := pprof.Label(ctx, "kind")
		got = append(got, kind)
		return nil
	}
	h := &handlers.Handler{ID: "fn", Family: handlers.Watching, Call: look}
	reconciler := adapters.New(h, nil)
	for _, kind := range []string{"Pod", "Secret", "Pod"} {
		reconciler.RunAttempt(t.Context(), execution.NewAttempt(h,
			&cause.Cause{Object: jsontext.NewFromValue(object{"kind": kind})}, nil))
	}
	if strings.Join(got, " ") != "Pod Secret Pod" {
		t.Errorf("the kinds are %v, want Pod, Secret and Pod", got)
	}
}
