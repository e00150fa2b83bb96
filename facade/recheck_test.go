package kopf_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestRecheckOn shows that a filter that reads an index is evaluated again when the index changes, and only then.
func TestRecheckOn(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		var asked atomic.Int32
		way, stop := h.runOperator(kopf.Settings{}, func(op *kopf.Operator, s houseSel) {
			byHouse := kopf.NewIndex(kopf.For(op, &corev1.ConfigMap{}), "by-house", func(
				_ context.Context, room *corev1.ConfigMap,
			) (map[string]string, error) {
				return map[string]string{strings.TrimPrefix(room.Name, "of-"): room.Name}, nil
			})
			furnished := s.RecheckOn(byHouse).When(func(_ context.Context, house *kopf.Unstructured) bool {
				asked.Add(1)
				return byHouse.Has(house.GetName())
			})
			furnished.OnCreate("create", func(context.Context, *houseChange) error { told.note("create"); return nil })
			furnished.OnDelete("delete", func(context.Context, *houseChange) error { told.note("delete"); return nil })
			furnished.Daemon("watch", func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				told.note("daemon begins")
				<-r.Stopping()
				told.note("daemon ends")
				return nil
			})
		})
		h.createHouseAndWait()
		told.want(t, "an object that is not in the index calls no handler")
		h.createUnownedRoom("of-home", "1")
		if got := slices.Sorted(slices.Values(told.take())); !slices.Equal(got, []string{"create", "daemon begins"}) {
			t.Errorf("an object in the index must call its handlers: got %q", got)
		}
		if got := h.house().GetFinalizers(); len(got) != 1 {
			t.Errorf("finalizers %v, want the one of the operator", got)
		}
		before := asked.Load()
		way.DrainRequests()
		h.editUndeclaredField("of-home", "2")
		h.createUnownedRoom("of-other", "1")
		h.deleteRoom("default", "of-home")
		told.want(t, "the daemon ends when the object leaves the index", "daemon ends")
		if got := h.house().GetFinalizers(); len(got) != 0 {
			t.Errorf("finalizers %v are left", got)
		}
		if got := writes(way); len(got) > 2 {
			t.Errorf("too many writes: %v", got)
		}
		if before == asked.Load() {
			t.Error("the filter must be evaluated again")
		}
		h.sleep(time.Minute)
		before = asked.Load()
		h.sleep(time.Hour)
		if now := asked.Load(); now != before {
			t.Errorf("the filter was evaluated %d times without a change", now-before)
		}
		stop()
	})
}

// TestRecheckOnOwnIndexEnds shows that replacing entries by equal ones is not a change, so that rechecks of the
// objects' own index end.
func TestRecheckOnOwnIndexEnds(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var asked atomic.Int32
		way, stop := h.runOperator(kopf.Settings{}, func(op *kopf.Operator, s houseSel) {
			byPhase := kopf.NewIndex(s, "by-phase", func(
				_ context.Context, house *kopf.Unstructured,
			) (map[string]string, error) {
				phase, _, err := nested(house, "status", "phase")
				return map[string]string{phase: house.GetName()}, err
			})
			s.RecheckOn(byPhase).When(func(context.Context, *kopf.Unstructured) bool { asked.Add(1); return true }).
				OnCreate("create", func(_ context.Context, c *houseChange) error {
					c.TryPatch(
						func(house *kopf.Unstructured) error { return kopf.SetField(house, "status.phase", "built") },
					)
					return nil
				})
		})
		h.createHouseAndWait()
		h.settle()
		way.DrainRequests()
		before := asked.Load()
		h.sleep(time.Hour)
		if now := asked.Load(); now != before {
			t.Errorf("the filter was evaluated %d times without a change", now-before)
		}
		if got := writes(way); len(got) > 0 {
			t.Errorf("the operator must not write without a change: %v", got)
		}
		stop()
	})
}

// TestRecheckOnNothing shows that a nil index in RecheckOn is an error of the set-up.
func TestRecheckOnNothing(t *testing.T) {
	op := kopf.New("test.example.org")
	var index *kopf.Index[string, string]
	kopf.For(op, &Widget{}).RecheckOn(index).OnCreate("create", succeed)
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil || !strings.Contains(err.Error(), "RecheckOn: an index is nil") {
		t.Errorf("got %v, want an error of the set-up", err)
	}
}
