package background_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/test/logkeys"
)

// harness holds one object with its handlers, an API server that accepts patches, and a queue made of timers.
type harness struct {
	*background.Supervisor
	kind.Writer
	t         *testing.T
	startTime time.Time

	mu          sync.Mutex
	body        map[string]any
	writeErrors []error // results of the next writes
	journal     []string
	logLines    []string
	// lacksFinalizer is true while the object does not have the finalizer.
	lacksFinalizer bool
	// answers are the results of the next writes, which then change nothing.
	answers []patching.WriteResult
}

func newHarness(t *testing.T, own ...*handlers.Handler) *harness {
	return newHarnessWith(t, background.KindSettings{}, own...)
}

// with returns settings of the background handlers of an operator with these settings.
func with(s kind.Settings) background.KindSettings {
	return background.KindSettings{HandledKind: kind.HandledKind{Settings: s}}
}

// newHarnessWith starts a supervisor for one object, with the given settings and defaults for the others.
func newHarnessWith(t *testing.T, settings background.KindSettings, own ...*handlers.Handler) *harness {
	w := &harness{
		t: t, startTime: time.Now(),
		Supervisor: &background.Supervisor{Ticks: &background.Limit{}, Daemons: &background.Limit{}},
	}
	w.body = map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "spec": map[string]any{},
		"metadata": map[string]any{"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "1"},
	}
	settings.Handlers, settings.Writer, settings.WriteTimeout = newChains(own...), w, time.Second
	settings.Backoff = 7 * time.Second
	if settings.PauseTimeout == 0 {
		settings.PauseTimeout = -1 // no time
	}
	settings.Settings = settings.WithDefaults()
	settings.Log = logkeys.Unique(t, funcr.New(func(_, line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logLines = append(w.logLines, line)
		switch {
		case strings.Contains(line, "its object waits for it"):
			w.journal = append(w.journal, w.at()+"reminded")
		case strings.Contains(line, "abandoning it"):
			w.journal = append(w.journal, w.at()+"abandoned")
		}
	}, funcr.Options{}))
	w.AllowStarts(settings, w)
	t.Cleanup(func() { w.StopAndWait(background.Exiting) })
	return w
}

// newChains returns the Reconcilers of handlers, as an operator sets them up.
func newChains(all ...*handlers.Handler) (list []*adapters.HandlerChain) {
	for _, h := range all {
		list = append(list, adapters.New(h, nil))
	}
	return list
}

func (w *harness) Newest(types.NamespacedName, types.UID) *jsontext.LazyObject {
	w.mu.Lock()
	defer w.mu.Unlock()
	return jsontext.NewFromValue(w.body)
}

// latest returns the present state of the object.
func (w *harness) latest() map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body
}

func (w *harness) Enqueue(_ types.NamespacedName, handler string, after time.Duration) {
	if handler == "" {
		w.note("look")
		return
	}
	time.AfterFunc(after, func() { w.FireTimer("u", handler) })
}

func (w *harness) ApplyRetrying(
	_ context.Context, target patching.Target, patch patching.Patch,
) (patching.WriteResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.writeErrors) > 0 {
		err := w.writeErrors[0]
		if w.writeErrors = w.writeErrors[1:]; err != nil {
			w.journal = append(w.journal, w.at()+"refused")
			return patching.WriteResult{}, err
		}
	}
	if len(w.answers) > 0 {
		answer := w.answers[0]
		w.answers = w.answers[1:]
		return answer, nil
	}
	changed, err := patch.ApplyTo(target.Body)
	if err == nil {
		w.body = changed
		w.journal = append(w.journal, w.at()+fmt.Sprint("wrote ", changed["status"]))
	}
	return patching.WriteResult{Body: changed}, err
}

func (w *harness) at() string { return time.Since(w.startTime).Round(time.Millisecond).String() + " " }

func (w *harness) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, w.at()+what)
}

// runPass supervises the object, as a pass does, and returns whether the object must be held.
func (w *harness) runPass() (holds bool) {
	w.t.Helper()
	body := w.latest()
	holds, busy, err := w.Supervise(w.t.Context(), &cause.Cause{
		Object: jsontext.NewFromValue(body), New: map[string]any{"spec": body["spec"]}, HasFinalizer: !w.lacksFinalizer,
	})
	if err != nil || busy {
		w.t.Errorf("busy: %v, error: %v; a living object does not wait for handlers to end", busy, err)
	}
	return holds
}

func (w *harness) want(after time.Duration, journal ...string) {
	w.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := cmp.Diff(journal, w.journal); d != "" {
		w.t.Errorf("after %s: -want, +got:\n%s", time.Since(w.startTime), d)
	}
	w.journal = nil
}

// backgroundHandler returns a handler that records its calls and runs the acts, one per call; the last act repeats.
func backgroundHandler(w **harness, b handlers.BackgroundOptions, acts ...handlers.Func) *handlers.Handler {
	n := 0
	return &handlers.Handler{ID: "h", Family: handlers.Background, Background: &b,
		Call: func(ctx context.Context, call *handlers.Invocation) error {
			(*w).note(fmt.Sprintf("call %d", call.Retry))
			act := acts[min(n, len(acts)-1)]
			n++
			return act(ctx, call)
		}}
}

func succeed(context.Context, *handlers.Invocation) error { return nil }

func returnResult(value string) handlers.Func {
	return func(_ context.Context, call *handlers.Invocation) error { return call.Writer.SetResult(value) }
}

// liveBody returns the newest state of the object of a background function.
func liveBody(call *handlers.Invocation) map[string]any {
	return (&cause.Cause{Object: call.LiveObject.Object()}).Body()
}
