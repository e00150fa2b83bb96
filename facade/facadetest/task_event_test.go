package facadetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

func TestDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := facadetest.NewTask(orders())
		var hosts []string
		got := r.Call(t.Context(), func(ctx context.Context, run *DatabaseRun) error {
			for n := 0; ; n++ {
				hosts = append(hosts, run.Latest().Spec.Owner)
				run.Patch(func(db *Database) { db.Status.Host = "seen by " + hosts[n] })
				if err := run.Flush(ctx); err != nil {
					return err
				}
				switch n {
				case 0:
					r.Edit(func(db *Database) { db.Spec.Owner = "bob" })
				case 1:
					time.AfterFunc(time.Hour, func() { r.Stop(kopf.ErrExiting) })
				}
				select {
				case <-run.Stopping():
					run.Info("Stopped", run.StopReason().Error())
					return nil
				case <-time.After(time.Minute):
				}
			}
		})
		if got.Err != nil || !got.Final || len(hosts) < 3 || hosts[0] != "ann" || hosts[1] != "bob" {
			t.Errorf("the daemon must see the edit and succeed: got the error %v, %d states beginning with %v",
				got.Err, len(hosts), hosts[:2])
		}
		want := map[string]any{"status": map[string]any{"host": "seen by bob"}}
		if d := cmp.Diff(want, got.Patch); d != "" {
			t.Errorf("the patch must not contain the edits of others: -want, +got:\n%s", d)
		}
		if got.Object.Spec.Owner != "bob" || len(got.Events) != 1 {
			t.Errorf("want the edited owner and one event: got %+v, %v", got.Object.Spec, got.Events)
		}
	})
}

func TestTick(t *testing.T) {
	r := facadetest.NewTask(orders(), facadetest.Retry(1), facadetest.Stopping(kopf.ErrPaused))
	var retries []int
	tick := func(_ context.Context, run *DatabaseRun) error {
		retries = append(retries, run.Retry)
		run.SetResult("lost, as it failed")
		return errors.Join(errLater, run.StopReason())
	}
	first := r.Call(t.Context(), tick, kopf.Retries(3), kopf.Backoff(time.Second))
	if first.Final || first.Delay != time.Second || !errors.Is(first.Err, kopf.ErrPaused) || first.Result != nil {
		t.Errorf("the second attempt must be retried after a second, without a result: got %+v", first)
	}
	second := r.Call(t.Context(), tick, kopf.Retries(3))
	if !second.Final || !errors.Is(second.Err, errLater) {
		t.Errorf("the third attempt must be final: got %+v", second)
	}
	if d := cmp.Diff([]int{1, 2}, retries); d != "" {
		t.Errorf("the numbers of the attempts: -want, +got:\n%s", d)
	}
}

func TestEvent(t *testing.T) {
	handler := func(_ context.Context, e *DatabaseEvent) error {
		e.Patch(func(db *Database) { db.Status.Host = string(e.Type) })
		e.Warn("Seen", string(e.Type))
		return errLater
	}
	got := facadetest.NewWatchEvent(kopf.WatchEventModified, orders()).Call(t.Context(), handler)
	if !errors.Is(got.Err, errLater) || !got.Final || got.Object.Status.Host != "MODIFIED" || len(got.Events) != 1 {
		t.Errorf("the outcome must have the error that the operator ignores: got %+v", got)
	}
	got = facadetest.NewWatchEvent(kopf.WatchEventDeleted, orders()).Call(t.Context(), handler)
	if got.Patch != nil || got.Object.Status.Host != "" || len(got.Events) != 1 {
		t.Errorf("nothing must be written to a deleted object: got %+v", got)
	}
}

func TestChildEvent(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-0"},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1"},
	}
	got := facadetest.NewChildEvent(kopf.WatchEventAdded, orders(), pod, facadetest.Retry(2)).Call(t.Context(),
		func(_ context.Context, e *kopf.ChildEvent[*Database, *corev1.Pod]) error {
			e.Patch(func(db *Database) { db.Status.Host = e.Child.Status.PodIP })
			if e.Retry == 2 && e.Type == kopf.WatchEventAdded {
				return nil
			}
			return errNever
		})
	if got.Err != nil || !got.Final || got.Object.Status.Host != "10.0.0.1" {
		t.Errorf("the handler must get the child and patch the parent: got %+v", got)
	}
}

func TestIndexAndMemo(t *testing.T) {
	type seen struct{ Times int }
	index := facadetest.NewIndex(map[string][]string{"ann": {"orders", "users"}, "bob": {"bills"}})
	db, other := orders(), orders(func(db *Database) { db.Name = "other" })
	known := &seen{Times: 5}
	memo := facadetest.NewMemo(map[client.Object]*seen{db: known}, func() *seen { return &seen{Times: 100} })

	handler := func(_ context.Context, c *DatabaseChange) error {
		memo.Of(c.Object).Times++
		c.SetResult([]int{memo.Of(c.Object).Times, len(index.Get(c.Object.Spec.Owner))})
		return nil
	}
	got := facadetest.NewChange(db).Call(t.Context(), handler)
	if d := cmp.Diff([]any{int64(6), int64(2)}, got.Result); d != "" || known.Times != 6 {
		t.Errorf("the memo of the test is used: error %v, memo %+v: -want, +got:\n%s", got.Err, known, d)
	}
	got = facadetest.NewChange(other).Call(t.Context(), handler)
	if d := cmp.Diff([]any{int64(101), int64(2)}, got.Result); d != "" {
		t.Errorf("another object gets a new memo: error %v, -want, +got:\n%s", got.Err, d)
	}
	if index.Len() != 2 || index.Has("eve") {
		t.Errorf("the index must have the two keys of the test, got %d keys", index.Len())
	}
}
