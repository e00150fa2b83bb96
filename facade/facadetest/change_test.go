package facadetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

func TestChangeTellsWhatTheHandlerDid(t *testing.T) {
	db := orders()
	got := facadetest.NewChange(db, facadetest.ID("provision")).Call(t.Context(),
		func(_ context.Context, c *DatabaseChange) error {
			c.Patch(func(db *Database) {
				db.Status.Host = "db-1"
				db.Labels = map[string]string{"ready": "yes"}
			})
			c.Info("Provisioned", "on "+c.Object.Status.Host)
			c.SetResult(map[string]any{"port": 5432})
			return nil
		})
	want := facadetest.Outcome[*Database]{
		Called: true, Final: true,
		Object: orders(func(db *Database) {
			db.Status.Host, db.Labels = "db-1", map[string]string{"ready": "yes"}
		}),
		Patch: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"ready": "yes"}},
			"status":   map[string]any{"host": "db-1", "provision": map[string]any{"port": int64(5432)}},
		},
		Result: map[string]any{"port": int64(5432)},
		Events: []facadetest.Posted{{Type: "Normal", Reason: "Provisioned", Message: "on db-1"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if d := cmp.Diff(orders(), db); d != "" {
		t.Errorf("the object of the test is its own: -want, +got:\n%s", d)
	}
}

func TestReasons(t *testing.T) {
	smaller := func(db *Database) { db.Spec.Size = 1 }
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		why     string
		object  *Database
		options []facadetest.Option
		want    kopf.Reason
		old     int
	}{
		"Create": {"nothing old is known", orders(), nil, kopf.ReasonCreate, 0},
		"Update": {
			"Old differs", orders(), []facadetest.Option{facadetest.Old(orders(smaller))}, kopf.ReasonUpdate, 1,
		},
		"Delete": {
			"it is going", orders(func(db *Database) { db.DeletionTimestamp = &now }), nil, kopf.ReasonDelete, 3,
		},
		"AskedDelete": {
			"the object gets its deletionTimestamp", orders(),
			[]facadetest.Option{facadetest.Reason(kopf.ReasonDelete)}, kopf.ReasonDelete, 3,
		},
		"DeleteWithChange": {
			"it was changed before it was deleted", orders(),
			[]facadetest.Option{facadetest.Old(orders(smaller)), facadetest.Reason(kopf.ReasonDelete)},
			kopf.ReasonDelete, 1,
		},
		"Resume": {
			"nothing has changed", orders(), []facadetest.Option{facadetest.Reason(kopf.ReasonResume)},
			kopf.ReasonResume, 3,
		},
		"ResumeWithChange": {
			"resume handlers take part in an update", orders(),
			[]facadetest.Option{facadetest.Old(orders(smaller)), facadetest.Reason(kopf.ReasonResume)},
			kopf.ReasonUpdate, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var reason kopf.Reason
			var old int
			got := facadetest.NewChange(tc.object, tc.options...).Call(t.Context(),
				func(_ context.Context, c *DatabaseChange) error {
					reason, old = c.Reason, c.Old.Spec.Size
					c.Patch(func(db *Database) { db.Status.Host = "gone" })
					return nil
				})
			if got.Err != nil || reason != tc.want || old != tc.old {
				t.Errorf("%s: got %v, reason %q, old size %d, want %q and %d", tc.why, got.Err, reason, old, tc.want,
					tc.old)
			}
			if d := cmp.Diff(map[string]any{"status": map[string]any{"host": "gone"}}, got.Patch); d != "" {
				t.Errorf("what the operator does beside it is no news: -want, +got:\n%s", d)
			}
		})
	}
}

func TestField(t *testing.T) {
	var before, after *int
	var id string
	resize := func(_ context.Context, c *DatabaseChange) error {
		before, after = kopf.FieldChange[int](c)
		id = c.ID
		c.SetResult(c.Diff)
		return nil
	}
	got := facadetest.NewChange(orders(), facadetest.Field("spec.size", 3, 5)).Call(t.Context(), resize)
	if got.Err != nil || before == nil || *before != 3 || after == nil || *after != 5 || id != "handler/spec.size" {
		t.Errorf("got %v, %v, %v, id %q", got.Err, before, after, id)
	}
	if got.Object.Spec.Size != 5 {
		t.Errorf("the object has the value after the change: got %d", got.Object.Spec.Size)
	}
	facadetest.NewChange(orders(), facadetest.Field("spec.size", 3, nil)).Call(t.Context(), resize)
	if before == nil || after != nil {
		t.Errorf("nil is no value: got %v, %v", before, after)
	}
}

func TestAttempts(t *testing.T) {
	failed := errors.New("the cloud is closed")
	var attempts []int
	fail := func(_ context.Context, c *DatabaseChange) error {
		attempts = append(attempts, c.Retry)
		c.Patch(func(db *Database) { db.Status.Host = "half" })
		return kopf.Temporary(failed, time.Hour)
	}
	c := facadetest.NewChange(orders(), facadetest.Retry(3))
	got := c.Call(t.Context(), fail, kopf.Retries(5))
	if !errors.Is(got.Err, failed) || got.Final || got.Delay != time.Hour || got.Object.Status.Host != "half" {
		t.Errorf("want it to be called again in an hour, and what it has patched to be written: got %+v", got)
	}
	got = c.Call(t.Context(), fail, kopf.Retries(5))
	if !errors.Is(got.Err, failed) || !got.Final || got.Patch != nil {
		t.Errorf("want the fifth call to be the last one, which writes nothing new: got %+v", got)
	}
	if d := cmp.Diff([]int{3, 4}, attempts); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	got = c.Call(t.Context(), fail, kopf.Retries(5))
	if got.Called || got.Err == nil {
		t.Errorf("it is finished: got %+v", got)
	}
	contains(t, errorText(got.Err), "the function was not called", `"create"`)
}

func TestTimeoutCountsFromTheStart(t *testing.T) {
	c := facadetest.NewChange(orders(), facadetest.Started(time.Now().Add(-time.Hour)))
	got := c.Call(t.Context(), func(context.Context, *DatabaseChange) error { return nil }, kopf.Timeout(time.Minute))
	if got.Called || !got.Final || got.Err == nil {
		t.Errorf("the time is over: got %+v", got)
	}
}

func TestPanics(t *testing.T) {
	got := facadetest.NewChange(orders()).Call(t.Context(), func(context.Context, *DatabaseChange) error {
		panic("the roof is on fire")
	})
	contains(t, errorText(got.Err), "the roof is on fire")
}

func TestInPlace(t *testing.T) {
	got := facadetest.NewChange(orders()).Call(t.Context(), func(_ context.Context, c *DatabaseChange) error {
		c.Object.Spec.Size = 7
		c.Patch(func(db *Database) { db.Spec.Owner = "bob" })
		return nil
	})
	if d := cmp.Diff([]string{"spec.size"}, got.InPlace); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if d := cmp.Diff(orders(func(db *Database) { db.Spec.Owner = "bob" }), got.Object); d != "" {
		t.Errorf("what is changed in place is lost: -want, +got:\n%s", d)
	}
}

func TestFlush(t *testing.T) {
	var seen string
	got := facadetest.NewChange(orders()).Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
		c.Patch(func(db *Database) { db.Status.Host = "db-1" })
		if err := c.Flush(ctx); err != nil {
			return err
		}
		seen = c.Latest().Status.Host
		c.Condition("HostReady", metav1.ConditionTrue, "Provisioned", "it answers")
		return nil
	})
	if got.Err != nil || seen != "db-1" || got.Object.Status.Host != "db-1" {
		t.Errorf("got %v, latest %q, object %+v", got.Err, seen, got.Object.Status)
	}
}

func TestDynamicObjects(t *testing.T) {
	object := &unstructuredObject
	got := facadetest.NewChange(object).Call(t.Context(), func(
		_ context.Context, c *kopf.Change[*kopf.Unstructured],
	) error {
		c.TryPatch(func(o *kopf.Unstructured) error { return kopf.SetField(o, "status.host", "db-1") })
		return nil
	})
	host, err := kopf.GetField[string](got.Object, "status.host")
	if got.Err != nil || err != nil || host != "db-1" {
		t.Errorf("got %v, %v, %q", got.Err, err, host)
	}
}
