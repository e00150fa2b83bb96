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
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

type houseChange = kopf.Change[*kopf.Unstructured]

// isRoomReady reports whether a room has the value that the tests wait for.
func isRoomReady(room *corev1.ConfigMap) bool { return room.Data["value"] == "ready" }

func bath() *corev1.ConfigMap {
	room := &corev1.ConfigMap{}
	room.Name = "bath"
	return room
}

// progress returns the record of a handler, or an empty text.
func (h ensureFixture) progress(id string) string {
	return h.house().GetAnnotations()["test.example.org/"+id]
}

// editUndeclaredField edits an undeclared field, as a controller of rooms does.
func (h ensureFixture) editUndeclaredField(name, value string) {
	h.api.Edit(settings, "default", name, func(room map[string]any) { room["data"] = map[string]any{"value": value} })
	h.waitForRepairs()
}

// waitForRepairs is long enough for repairs, and too short for waits.
func (h ensureFixture) waitForRepairs() { h.sleep(10 * time.Second) }

// sleep lets time pass, and waits until nothing runs any more.
func (h ensureFixture) sleep(d time.Duration) { time.Sleep(d); synctest.Wait() }

// ensureEmptyRoom ensures a room whose value is not declared, so that other clients can set it.
func ensureEmptyRoom(ctx context.Context, c *houseChange) error { return c.Ensure(ctx, bath()) }

func (h *childCalls) waitHandler(
	before kopf.ChangeFunc[*kopf.Unstructured], timeout time.Duration,
) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, c *houseChange) error {
		h.note("call, retry %d", c.Retry)
		if err := before(ctx, c); err != nil {
			return err
		}
		if err := kopf.WaitFor(c, bath(), isRoomReady, timeout); err != nil {
			return err
		}
		h.note("done")
		return nil
	}
}

func ignoreChange(context.Context, *houseChange) error { return nil }

// TestWaitFor shows that a handler waits for a child without requests, and is called when the child matches.
func TestWaitFor(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		way, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.On("wait", nonDeleteReasons[:2], told.waitHandler(ensureEmptyRoom, time.Hour), kopf.Retries(1))
		})
		h.createHouseAndWait()
		told.want(t, "the handler is called once and waits", "call, retry 0")
		way.DrainRequests()
		h.editUndeclaredField("bath", "tiles")
		told.want(t, "a child that does not match calls no handler")
		if got := writes(way); len(got) > 1 { // the apply that repairs nothing
			t.Errorf("the wait must not send requests: %v", got)
		}
		h.deleteRoom("default", "bath")
		h.editUndeclaredField("bath", "ready")
		told.want(t, "a child that returns and matches calls the handler", "call, retry 0", "done")
		if left := h.progress("wait"); left != "" {
			t.Errorf("the record must be removed: %s", left)
		}
		stop()
	})
}

// TestWaitForRecord shows that the record of a waiting handler has the awaited child, and the delay that Kopf needs.
func TestWaitForRecord(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		begun := time.Now().UTC()
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waitHandler(ensureEmptyRoom, time.Hour))
		})
		h.createHouseAndWait()
		record := h.progress("wait")
		delayed := begun.Add(time.Hour).Format("2006-01-02T15:04")
		for _, part := range []string{
			`"awaited":"ConfigMap bath"`, `"until":"` + delayed, `"delayed":"` + delayed, `"retries":0`,
		} {
			if !strings.Contains(record, part) {
				t.Errorf("D-awaited: the record must have %s: %s", part, record)
			}
		}
		stop()
	})
}

// TestWaitForTimesOut shows that a wait ends with a permanent error that names the child, the handler and the line.
func TestWaitForTimesOut(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		var failure error
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			wait := told.waitHandler(ensureEmptyRoom, time.Hour)
			s.OnCreate("wait", func(ctx context.Context, c *houseChange) error {
				err := wait(ctx, c)
				if errors.Is(err, kopf.ErrWaitTimeout) {
					failure = err
				}
				return err
			})
		})
		h.createHouseAndWait()
		h.sleep(50 * time.Minute)
		told.want(t, "before the timeout, the handler is called only once", "call, retry 0")
		h.sleep(time.Hour)
		told.want(t, "at the timeout, the handler is called again", "call, retry 0")
		if failure == nil || !execution.IsPermanent(failure) {
			t.Fatalf("the failure is %v, want a permanent one", failure)
		}
		for _, part := range []string{"ConfigMap bath", "object default/home", `"wait"`, "1h0m0s", ".go:"} {
			if !strings.Contains(failure.Error(), part) {
				t.Errorf("the failure must name %s: %v", part, failure)
			}
		}
		stop()
	})
}

// TestWaitForGoesOn shows that restarts and errors do not move the end of the wait.
func TestWaitForGoesOn(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		begin := func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waitHandler(ensureEmptyRoom, time.Hour))
		}
		_, stop := h.run(begin)
		h.createHouseAndWait() // 5 minutes
		before := h.progress("wait")
		stop()
		h.sleep(20 * time.Minute)
		failed := false
		_, stop = h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waitHandler(func(ctx context.Context, c *houseChange) error {
				if !failed {
					failed = true
					return kopf.Temporary(errors.New("later"), time.Minute)
				}
				return ensureEmptyRoom(ctx, c)
			}, time.Hour))
		})
		h.settle()
		told.want(t, "the handler is called once in each process, and after the error", "call, retry 0",
			"call, retry 0", "call, retry 1")
		if after := h.progress("wait"); part(before, `"until":"`) != part(after, `"until":"`) {
			t.Errorf("the end must not move: from %s to %s", before, after)
		}
		h.sleep(35 * time.Minute)
		told.want(t, "the wait ends an hour after its beginning", "call, retry 1")
		stop()
	})
}

// part returns the text between a mark and the next quote.
func part(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// TestWaitForIsOverWithTheChange shows that an edit of the object calls a waiting handler, because the child may need
// the edit.
func TestWaitForIsOverWithTheChange(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.On("wait", nonDeleteReasons[:2], told.waitHandler(ensureEmptyRoom, time.Hour))
		})
		h.createHouseAndWait()
		h.changeRooms("hall")
		told.want(t, "an edit calls the handler again", "call, retry 0", "call, retry 0")
		h.editUndeclaredField("bath", "ready")
		told.want(t, "a child that matches calls the handler", "call, retry 0", "done")
		stop()
	})
}

// TestWaitForIsNotMisledByTheCache shows that WaitFor sees the applied child, even if the cache has an older one.
func TestWaitForIsNotMisledByTheCache(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var values []string
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.On("wait", nonDeleteReasons[:2], func(ctx context.Context, c *houseChange) error {
				if err := ensure(ctx, c); err != nil {
					return err
				}
				return kopf.WaitFor(c, bath(), func(room *corev1.ConfigMap) bool {
					values = append(values, room.Data["value"])
					return true
				}, time.Hour)
			})
		})
		h.createHouseAndWait("bath=1")
		h.changeRooms("bath=2")
		if d := cmp.Diff([]string{"1", "2"}, slices.Compact(values)); d != "" {
			t.Errorf("the function has seen %q, want the applied values", values)
		}
		stop()
	})
}

// TestWaitForUndeclaredSub shows that a sub-handler that is not declared any more leaves nothing that calls its
// handler.
func TestWaitForUndeclaredSub(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			calls := 0
			s.OnCreate("parent", func(_ context.Context, c *houseChange) error {
				told.note("parent")
				if calls++; calls == 1 {
					c.Sub("wait", told.waitHandler(ensureEmptyRoom, time.Hour))
				}
				c.Sub("other", func(_ context.Context, c *houseChange) error {
					hall := &corev1.ConfigMap{}
					hall.Name = "hall"
					return kopf.WaitFor(c, hall, isRoomReady, time.Hour)
				})
				return nil
			})
		})
		h.createHouseAndWait()
		h.editUndeclaredField("bath", "ready")
		h.waitForRepairs()
		told.want(t, "the child calls the parent once", "parent", "call, retry 0", "parent")
		stop()
	})
}

// TestWaitForWithoutOwns shows that wrong calls of WaitFor are permanent errors.
func TestWaitForWithoutOwns(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var failures []error
		_, stop := h.run(func(s houseSel) {
			s.OnCreate("wait", func(_ context.Context, c *houseChange) error {
				nameless := bath()
				nameless.Name = ""
				var none *corev1.ConfigMap
				failures = append(failures, kopf.WaitFor(c, bath(), isRoomReady, time.Hour),
					kopf.WaitFor(c, nameless, isRoomReady, time.Hour), kopf.WaitFor(c, none, isRoomReady, time.Hour),
					kopf.WaitFor(c, bath(), nil, time.Hour), kopf.WaitFor(c, bath(), isRoomReady, 60))
				return failures[0]
			})
		})
		h.createHouseAndWait()
		want := []string{
			"register Owns(&v1.ConfigMap{})", "has no name", "is nil", "function is nil",
			"60*time.Second",
		}
		if len(failures) != len(want) {
			t.Fatalf("the handler must be called only once: %v", failures)
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

// TestWaitForWithinTheTimeout shows that a wait ends with the timeout of its handler.
func TestWaitForWithinTheTimeout(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		_, stop := h.run(func(s houseSel) {
			s.Owns(&corev1.ConfigMap{})
			s.OnCreate("wait", told.waitHandler(ignoreChange, time.Hour), kopf.Timeout(10*time.Minute))
		})
		h.createHouseAndWait()
		h.sleep(10 * time.Minute)
		told.want(t, "the handler is not called after its timeout", "call, retry 0")
		if left := h.progress("wait"); left != "" {
			t.Errorf("the handler must have ended: %s", left)
		}
		stop()
	})
}
