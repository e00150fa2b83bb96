package kopf_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

type houseChange = kopf.Change[*kopf.Unstructured]

// settled tells whether a room is as the tests wait for it.
func settled(room *corev1.ConfigMap) bool { return room.Data["value"] == "ready" }

func bath() *corev1.ConfigMap {
	room := &corev1.ConfigMap{}
	room.Name = "bath"
	return room
}

// progress is the record of a handler; empty if there is none.
func (h household) progress(id string) string {
	return h.house().GetAnnotations()["test.example.org/"+id]
}

// furnish is what a controller of rooms does: what nobody declares.
func (h household) furnish(name, value string) {
	h.api.Edit(settings, "default", name, func(room map[string]any) { room["data"] = map[string]any{"value": value} })
	h.pause()
}

// pause is short: repairs and the like are over, waits are not.
func (h household) pause() { h.sleep(10 * time.Second) }

// sleep lets time go by, and all that happens then.
func (h household) sleep(d time.Duration) { time.Sleep(d); synctest.Wait() }

// empty are rooms of which the value is not declared, so that anybody may set it.
func empty(ctx context.Context, c *houseChange) error { return c.Ensure(ctx, bath()) }

func (h *heard) waits(
	before kopf.ChangeFunc[*kopf.Unstructured], timeout time.Duration,
) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, c *houseChange) error {
		h.note("call, retry %d", c.Retry)
		if err := before(ctx, c); err != nil {
			return err
		}
		if err := kopf.WaitFor(c, bath(), settled, timeout); err != nil {
			return err
		}
		h.note("done")
		return nil
	}
}

func nothing(context.Context, *houseChange) error { return nil }

func TestWaitFor(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		way, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.On("wait", always[:2], told.waits(empty, time.Hour), kopf.Retries(1))
		})
		h.build()
		told.want(t, "the beginning", "call, retry 0")
		way.Drain()
		h.furnish("bath", "tiles")
		told.want(t, "a child that is not as wanted")
		if got := writes(way); len(got) > 1 { // the apply that repairs nothing
			t.Errorf("the wait costs requests: %v", got)
		}
		h.demolish("default", "bath")
		h.furnish("bath", "ready")
		told.want(t, "the child came back, and is there", "call, retry 0", "done")
		if left := h.progress("wait"); left != "" {
			t.Errorf("a record is left: %s", left)
		}
		stop()
	})
}

// What others have made is waited for as well, though nothing of it is repaired.
func TestWaitForOthers(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.On("wait", always[:2], told.waits(nothing, time.Hour))
		})
		h.build()
		h.adopt("bath", "tiles")
		told.want(t, "a child that is not as wanted", "call, retry 0")
		h.furnish("bath", "ready")
		told.want(t, "a child that is", "call, retry 0", "done")
		stop()
	})
}

// The handler has no other call than its own, and the record has what Kopf needs.
func TestWaitForRecord(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		begun := time.Now().UTC()
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waits(empty, time.Hour))
		})
		h.build()
		record := h.progress("wait")
		delayed := begun.Add(time.Hour).Format("2006-01-02T15:04")
		for _, part := range []string{
			`"awaited":"ConfigMap bath"`, `"until":"` + delayed, `"delayed":"` + delayed, `"retries":0`,
		} {
			if !strings.Contains(record, part) {
				t.Errorf("D-awaited: the record has no %s: %s", part, record)
			}
		}
		stop()
	})
}

func TestWaitForTimesOut(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		var failure error
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			wait := told.waits(empty, time.Hour)
			s.OnCreate("wait", func(ctx context.Context, c *houseChange) error {
				err := wait(ctx, c)
				if errors.Is(err, kopf.ErrWaitTimeout) {
					failure = err
				}
				return err
			})
		})
		h.build()
		h.sleep(50 * time.Minute)
		told.want(t, "before the end", "call, retry 0")
		h.sleep(time.Hour)
		told.want(t, "the end", "call, retry 0")
		if failure == nil || !execution.IsPermanent(failure) {
			t.Fatalf("the failure is %v, want a permanent one", failure)
		}
		for _, part := range []string{"ConfigMap bath", "object default/home", `"wait"`, "1h0m0s", ".go:"} {
			if !strings.Contains(failure.Error(), part) {
				t.Errorf("the failure does not name %s: %v", part, failure)
			}
		}
		stop()
	})
}

// Restarts and errors in between do not move the end.
func TestWaitForGoesOn(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		begin := func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waits(empty, time.Hour))
		}
		_, stop := h.run(begin)
		h.build() // 5 minutes
		before := h.progress("wait")
		stop()
		h.sleep(20 * time.Minute)
		failed := false
		_, stop = h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waits(func(ctx context.Context, c *houseChange) error {
				if !failed {
					failed = true
					return kopf.Temporary(errors.New("later"), time.Minute)
				}
				return empty(ctx, c)
			}, time.Hour))
		})
		h.settle()
		told.want(t, "once in each life, and after the error", "call, retry 0", "call, retry 0", "call, retry 1")
		if after := h.progress("wait"); part(before, `"until":"`) != part(after, `"until":"`) {
			t.Errorf("the end has moved: from %s to %s", before, after)
		}
		h.sleep(35 * time.Minute)
		told.want(t, "the end, an hour after the beginning", "call, retry 1")
		stop()
	})
}

// part is what a text has between a mark and the next quote.
func part(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// An edit of the object may be what the child needs, so the handler is called for it.
func TestWaitForIsOverWithTheChange(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.On("wait", always[:2], told.waits(empty, time.Hour))
		})
		h.build()
		h.rebuild("hall")
		told.want(t, "an edit", "call, retry 0", "call, retry 0")
		h.furnish("bath", "ready")
		told.want(t, "the child", "call, retry 0", "done")
		stop()
	})
}

// What was applied just now is not what the cache has yet.
func TestWaitForIsNotMisledByTheCache(t *testing.T) {
	inHousehold(t, func(h household) {
		var values []string
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.On("wait", always[:2], func(ctx context.Context, c *houseChange) error {
				if err := ensure(ctx, c); err != nil {
					return err
				}
				return kopf.WaitFor(c, bath(), func(room *corev1.ConfigMap) bool {
					values = append(values, room.Data["value"])
					return true
				}, time.Hour)
			})
		})
		h.build("bath=1")
		h.rebuild("bath=2")
		if d := cmp.Diff([]string{"1", "2"}, slices.Compact(values)); d != "" {
			t.Errorf("the function has seen %q, want the values as they were applied", values)
		}
		stop()
	})
}

func TestWaitForSubHandlers(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		begin := func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("parent", func(_ context.Context, c *houseChange) error {
				told.note("parent, retry %d", c.Retry)
				c.Sub("wait", told.waits(empty, time.Hour), kopf.Retries(1))
				c.Sub("last", func(context.Context, *houseChange) error { told.note("last"); return nil },
					kopf.After("wait"))
				return nil
			}, kopf.Retries(1))
		}
		_, stop := h.run(begin)
		h.build()
		told.want(t, "the beginning", "parent, retry 0", "call, retry 0")
		stop()
		_, stop = h.run(begin)
		h.settle()
		told.want(t, "a restart", "parent, retry 0", "call, retry 0")
		h.furnish("bath", "ready")
		told.want(t, "the child", "parent, retry 0", "call, retry 0", "done", "last")
		stop()
	})
}

// A sub-handler that is not declared any more leaves nothing that calls its handler.
func TestWaitForOfNobody(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			calls := 0
			s.OnCreate("parent", func(_ context.Context, c *houseChange) error {
				told.note("parent")
				if calls++; calls == 1 {
					c.Sub("wait", told.waits(empty, time.Hour))
				}
				c.Sub("other", func(_ context.Context, c *houseChange) error {
					hall := &corev1.ConfigMap{}
					hall.Name = "hall"
					return kopf.WaitFor(c, hall, settled, time.Hour)
				})
				return nil
			})
		})
		h.build()
		h.furnish("bath", "ready")
		h.pause()
		told.want(t, "the child calls the parent once", "parent", "call, retry 0", "parent")
		stop()
	})
}

func TestWaitForWithoutOwns(t *testing.T) {
	inHousehold(t, func(h household) {
		var failures []error
		_, stop := h.run(func(s houseSel) {
			s.OnCreate("wait", func(_ context.Context, c *houseChange) error {
				nameless := bath()
				nameless.Name = ""
				var none *corev1.ConfigMap
				failures = append(failures, kopf.WaitFor(c, bath(), settled, time.Hour),
					kopf.WaitFor(c, nameless, settled, time.Hour), kopf.WaitFor(c, none, settled, time.Hour),
					kopf.WaitFor(c, bath(), nil, time.Hour), kopf.WaitFor(c, bath(), settled, 60))
				return failures[0]
			})
		})
		h.build()
		want := []string{
			"register Owns(&v1.ConfigMap{})", "has no name", "is nil", "function is nil",
			"60*time.Second",
		}
		if len(failures) != len(want) {
			t.Fatalf("the handler was called again: %v", failures)
		}
		for i, text := range want {
			if err := failures[i]; err == nil || !strings.Contains(err.Error(), text) || !execution.IsPermanent(err) ||
				!strings.Contains(err.Error(), `object default/home in handler "wait"`) {
				t.Errorf("the failure is %v, want one about %q", err, text)
			}
		}
		stop()
	})
}

// Handlers that are limited by themselves end in time.
func TestWaitForWithinTheTimeout(t *testing.T) {
	inHousehold(t, func(h household) {
		var told heard
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waits(nothing, time.Hour), kopf.Timeout(10*time.Minute))
		})
		h.build()
		h.sleep(10 * time.Minute)
		told.want(t, "no call beyond the timeout", "call, retry 0")
		if left := h.progress("wait"); left != "" {
			t.Errorf("the handler has not ended: %s", left)
		}
		stop()
	})
}
