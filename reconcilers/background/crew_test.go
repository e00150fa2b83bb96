package background_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// world is one object with its handlers, an API server that takes patches, and a queue made of timers.
type world struct {
	*background.Crew
	t     *testing.T
	began time.Time

	mu      sync.Mutex
	body    map[string]any
	refuse  []error // by the next writes
	journal []string
	said    []string
}

func newWorld(t *testing.T, own ...*handlers.Handler) *world { return newPatientWorld(t, 0, own...) }

// newPatientWorld gives its handlers so long to end at the first word.
func newPatientWorld(t *testing.T, instantExit time.Duration, own ...*handlers.Handler) *world {
	w := &world{
		t: t, began: time.Now(), Crew: &background.Crew{Ticks: &background.Limit{}, Daemons: &background.Limit{}},
	}
	w.body = map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "spec": map[string]any{},
		"metadata": map[string]any{"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "1"},
	}
	w.Begin(background.Settings{
		Handlers: made(own...), Writer: w, WriteTimeout: time.Second, Backoff: 7 * time.Second,
		InstantExit: instantExit,
		Log: funcr.New(func(
			_, line string,
		) {
			w.mu.Lock()
			w.said = append(w.said, line)
			w.mu.Unlock()
		}, funcr.Options{}),
	}, w)
	t.Cleanup(func() { w.End(background.Exiting) })
	return w
}

// made are the Reconcilers of handlers, as an operator sets them up.
func made(all ...*handlers.Handler) (list []*adapters.Handler) {
	for _, h := range all {
		list = append(list, adapters.New(h, nil))
	}
	return list
}

func (w *world) Latest(types.NamespacedName, types.UID) map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body
}

func (w *world) Enqueue(_ types.NamespacedName, handler string, after time.Duration) {
	if handler == "" {
		w.note("look")
		return
	}
	time.AfterFunc(after, func() { w.Fire("u", handler) })
}

func (w *world) ApplyRetrying(
	_ context.Context, target patching.Target, patch patching.Patch, _ patching.Refetch,
) (patching.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.refuse) > 0 {
		err := w.refuse[0]
		if w.refuse = w.refuse[1:]; err != nil {
			w.journal = append(w.journal, w.at()+"refused")
			return patching.Result{}, err
		}
	}
	changed, err := patch.ApplyTo(target.Body)
	if err == nil {
		w.body = changed
		w.journal = append(w.journal, w.at()+fmt.Sprint("wrote ", changed["status"]))
	}
	return patching.Result{Body: changed}, err
}

func (w *world) at() string { return time.Since(w.began).Round(time.Millisecond).String() + " " }

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, w.at()+what)
}

// attend looks at the object, as a pass does.
func (w *world) attend() (holds bool) {
	w.t.Helper()
	w.mu.Lock()
	body := w.body
	w.mu.Unlock()
	holds, _, err := w.Attend(w.t.Context(), &cause.Cause{Body: body, New: map[string]any{"spec": body["spec"]}})
	if err != nil {
		w.t.Error(err)
	}
	return holds
}

func (w *world) want(after time.Duration, journal ...string) {
	w.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := cmp.Diff(journal, w.journal); d != "" {
		w.t.Errorf("after %s: -want, +got:\n%s", time.Since(w.began), d)
	}
	w.journal = nil
}

// spawning notes its calls, and does what the acts say, one call after another; then the last one.
func spawning(w **world, b handlers.Background, acts ...handlers.Func) *handlers.Handler {
	n := 0
	return &handlers.Handler{ID: "h", Family: handlers.Spawning, Background: &b,
		Call: func(ctx context.Context, call *handlers.Call) error {
			(*w).note(fmt.Sprintf("call %d", call.Retry))
			act := acts[min(n, len(acts)-1)]
			n++
			return act(ctx, call)
		}}
}

func succeed(context.Context, *handlers.Call) error { return nil }

func tell(value string) handlers.Func {
	return func(_ context.Context, call *handlers.Call) error { return call.Writes.SetResult(value) }
}

func TestFailuresInTheBackground(t *testing.T) {
	bad := errors.New("bad")
	tests := map[string]struct {
		reason string
		act    handlers.Func
	}{
		"Error": {
			"an ordinary error is tried again after the backoff",
			func(context.Context, *handlers.Call) error { return bad },
		},
		"Panic": {"so is a panic", func(context.Context, *handlers.Call) error { panic(bad) }},
		"Goexit": {"and a function that ends its goroutine", func(
			context.Context, *handlers.Call,
		) error {
			runtime.Goexit()
			return nil
		}},
	}
	for name, tc := range tests {
		for kind, b := range map[string]handlers.Background{"Daemon": {Daemon: true}, "Timer": {Interval: time.Hour}} {
			want := []string{"0s call 0", "7s call 1", "7s wrote map[h:done]"}
			if b.Daemon {
				want = append(want, "7s look")
			}
			t.Run(name+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w *world
					w = newWorld(t, spawning(&w, b, tc.act, tell("done")))
					w.attend()
					w.want(time.Minute, want...)
				})
			})
		}
	}
}

// What a handler wrote is written as soon as that works; what is refused for good is lost, and said.
func TestWritesInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(
			t, spawning(&w, handlers.Background{Interval: time.Minute}, tell("first"), tell("second"), tell("third")),
		)
		w.refuse = []error{
			errors.New("no connection"), errors.New("no connection"), nil,
			fmt.Errorf("invalid: %w", patching.ErrRefused),
		}
		w.attend()
		w.want(30*time.Second, "0s call 0", "0s refused", "1s refused", "3s wrote map[h:first]")
		w.want(time.Minute, "1m3s call 0", "1m3s refused")
		if said := strings.Join(w.said, "\n"); strings.Count(said, "What the handler wrote is lost") != 1 {
			t.Errorf("that it is lost is said once: %s", said)
		}
		w.want(time.Minute, "2m3s call 0", "2m3s wrote map[h:third]")
	})
}

func TestFlushInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, spawning(&w, handlers.Background{Daemon: true},
			func(ctx context.Context, call *handlers.Call) error {
				for n := range 2 {
					_ = call.Writes.Remember(func(body map[string]any) error { body["status"] = n; return nil })
					if err := call.Writes.Flush(ctx); err != nil {
						return err
					}
					w.note(fmt.Sprint("sees ", call.Live.Object()["status"]))
					time.Sleep(time.Second)
				}
				return nil
			}))
		w.attend()
		w.want(time.Minute, "0s call 0", "0s wrote 0", "0s sees 0", "1s wrote 1", "1s sees 1", "2s look")
		if w.attend() {
			t.Error("a daemon that has returned is done, and holds nothing")
		}
		w.want(time.Minute)
	})
}

func TestGrids(t *testing.T) {
	slow := func(takes time.Duration) handlers.Func {
		return func(context.Context, *handlers.Call) error { time.Sleep(takes); return nil }
	}
	tests := map[string]struct {
		background handlers.Background
		act        handlers.Func
		want       []string
	}{
		"Interval": {
			handlers.Background{Interval: 10 * time.Second}, slow(3 * time.Second),
			[]string{"0s call 0", "13s call 0", "26s call 0"},
		},
		"Sharp": {
			handlers.Background{Interval: 10 * time.Second, Sharp: true}, slow(3 * time.Second),
			[]string{"0s call 0", "10s call 0", "20s call 0"},
		},
		"SharpLate": {
			handlers.Background{Interval: 10 * time.Second, Sharp: true}, slow(13 * time.Second),
			[]string{"0s call 0", "20s call 0"},
		},
		"Once": {handlers.Background{}, succeed, []string{"0s call 0", "0s look"}},
		"Idle": {handlers.Background{Idle: 12 * time.Second}, succeed, []string{"12s call 0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *world
				w = newWorld(t, spawning(&w, tc.background, tc.act))
				w.attend()
				w.want(29*time.Second, tc.want...)
			})
		})
	}
}

func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, spawning(&w, handlers.Background{Interval: 10 * time.Second, Jitter: 0.5}, succeed))
		w.attend()
		time.Sleep(time.Hour)
		synctest.Wait()
		w.mu.Lock()
		calls := len(w.journal)
		w.mu.Unlock()
		if calls < 250 || calls > 340 { // 360 without; 240 at most of it
			t.Errorf("%d calls in an hour: the intervals are not between 10 and 15 seconds, 12.5 on average", calls)
		}
	})
}

// The limit of ticks holds back those that are due, and forgets none.
func TestTicksAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := &background.Limit{Most: 2}
		running, most, done := 0, 0, 0
		var mu sync.Mutex
		for range 10 {
			limit.Go(func() {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running, done = running-1, done+1
				mu.Unlock()
			})
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if most != 2 || done != 10 {
			t.Errorf("%d at once, %d done after five seconds", most, done)
		}
	})
}
