package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestTickWithWriteThatNeverWorks shows that a write that never succeeds is dropped, and that the ticks continue.
func TestTickWithWriteThatNeverWorks(t *testing.T) {
	for _, code := range []int{403, 0} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
				p.create("ConfigMap", "c")
				var ticks atomic.Int64
				stop := operateAll(t, refusePatches(server, func(body string) int {
					if strings.Contains(body, "forbidden") {
						return code
					}
					return 0
				}), reconcilers.Options{},
					registrationFor(t, "configmaps", timer("t", 10*time.Second,
						func(ctx context.Context, call *handlers.Invocation) error {
							n := ticks.Add(1)
							calls := 0
							return call.Writer.AddTransform(func(body map[string]any) error {
								if calls++; code == 0 && n == 1 && calls > 1 {
									return errors.New("does not fit")
								}
								if n == 1 {
									return unstructured.SetNestedField(body, "forbidden", "data", "x")
								}
								return nil
							})
						})))
				defer stop()
				time.Sleep(time.Hour)
				if ticks.Load() < 100 {
					t.Errorf("code %d: %d ticks in an hour, want at least 100", code, ticks.Load())
				}
			})
		})
	}
}

// TestFlushTwice shows that two goroutines of one function can flush at the same time.
func TestFlushTwice(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		slow := refusePatches(server, func(body string) int {
			if strings.Contains(body, "count") {
				time.Sleep(time.Second)
			}
			return 0
		})
		stop := operateAll(t, slow, reconcilers.Options{},
			registrationFor(t, "configmaps", timer("t", time.Hour,
				func(ctx context.Context, call *handlers.Invocation) error {
					_ = call.Writer.AddTransform(func(body map[string]any) error {
						now, _, _ := unstructured.NestedString(body, "data", "count")
						return unstructured.SetNestedField(body, now+"x", "data", "count")
					})
					done := make(chan struct{})
					go func() { defer close(done); _ = call.Writer.Flush(ctx) }()
					_ = call.Writer.Flush(ctx)
					<-done
					return nil
				})))
		defer stop()
		time.Sleep(time.Minute)
		if got, _, _ := unstructured.NestedString(p.get("ConfigMap", "c").Object, "data", "count"); got != "x" {
			t.Errorf("the count is %q, want one x", got)
		}
	})
}

// TestLastWriteOfADaemon shows that a write after the stop signal is saved.
func TestLastWriteOfADaemon(t *testing.T) {
	for _, pause := range []bool{false, true} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
				p.create("ConfigMap", "c")
				gate := &reconcilers.Gate{}
				var flushed atomic.Value
				stop := operateAll(t, server, reconcilers.Options{Gate: gate},
					registrationFor(t, "configmaps", daemon("d",
						handlers.BackgroundOptions{CancelBackoff: time.Minute}, func(
							ctx context.Context, call *handlers.Invocation,
						) error {
							<-call.LiveObject.Stopping()
							_ = call.Writer.AddTransform(
								func(body map[string]any) error {
									return unstructured.SetNestedField(body, "x", "data", "bye")
								},
							)
							flushed.Store([]any{call.Writer.Flush(ctx), call.LiveObject.Object() != nil})
							return nil
						})))
				time.Sleep(5 * time.Second)
				if pause {
					gate.Set(true)
					time.Sleep(10 * time.Second)
				} else {
					stop()
				}
				if got, _, _ := unstructured.NestedString(p.get("ConfigMap", "c").Object, "data", "bye"); got != "x" {
					t.Errorf("pause %v: the last write is lost; Flush returned %v", pause, flushed.Load())
				}
				if pause {
					stop()
				}
			})
		})
	}
}

// TestStaleWorkingCopy shows that a patch of a daemon is rehearsed on the newest state of the object.
func TestStaleWorkingCopy(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		var got atomic.Value
		stop := operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{},
				func(ctx context.Context, call *handlers.Invocation) error {
					time.Sleep(time.Minute)
					live := (&unstructured.Unstructured{Object: liveBody(call)}).GetLabels()["l"]
					err := call.Writer.AddTransform(func(body map[string]any) error {
						if l := (&unstructured.Unstructured{Object: body}).GetLabels()["l"]; l != live {
							return fmt.Errorf("patched object has label %q, Live has %q", l, live)
						}
						return nil
					})
					if err != nil {
						got.Store(err)
					}
					<-ctx.Done()
					return nil
				})))
		defer stop()
		time.Sleep(5 * time.Second)
		p.label("ConfigMap", "c", "edited")
		time.Sleep(5 * time.Minute)
		if got.Load() != nil {
			t.Error(got.Load())
		}
	})
}

// TestFlushLeak shows that written transformations of a daemon are released.
func TestFlushLeak(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		var left, freed atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{},
				func(ctx context.Context, call *handlers.Invocation) error {
					for n := range 50 {
						big := make([]byte, 1<<20)
						runtime.AddCleanup(&big[0], func(int) { freed.Add(1) }, 0)
						_ = call.Writer.AddTransform(func(body map[string]any) error {
							_ = big[0]
							return unstructured.SetNestedField(body, fmt.Sprint(n), "data", "n")
						})
						_ = call.Writer.Flush(ctx)
						time.Sleep(time.Second)
					}
					runtime.GC()
					runtime.GC()
					time.Sleep(time.Second)
					left.Store(50 - freed.Load())
					<-ctx.Done()
					return nil
				})))
		defer stop()
		time.Sleep(5 * time.Minute)
		if left.Load() > 5 {
			t.Errorf("%d of 50 written transformations are still held, want at most 5", left.Load())
		}
	})
}

// TestIdleTimerAfterChanges shows that each change of the object is followed by one call of an idle timer.
func TestIdleTimerAfterChanges(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		var ticks atomic.Int64
		h := timer("t", 0, func(ctx context.Context, call *handlers.Invocation) error {
			ticks.Add(1)
			time.Sleep(5 * time.Second)
			return nil
		})
		h.Background.Idle = 10 * time.Second
		stop := operateAll(t, server, reconcilers.Options{}, registrationFor(t, "configmaps", h))
		defer stop()
		time.Sleep(12 * time.Second) // during the tick
		p.label("ConfigMap", "c", "1")
		time.Sleep(time.Minute)
		if ticks.Load() != 2 {
			t.Errorf("%d ticks, want 2", ticks.Load())
		}
		p.label("ConfigMap", "c", "2")
		time.Sleep(time.Minute)
		if ticks.Load() != 3 {
			t.Errorf("%d ticks, want 3", ticks.Load())
		}
	})
}
