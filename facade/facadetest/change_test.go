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

func TestOutcomeOfChange(t *testing.T) {
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
		t.Errorf("the outcome of the call: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(orders(), db); d != "" {
		t.Errorf("the object of the test must stay unchanged: -want, +got:\n%s", d)
	}
}

func TestReasons(t *testing.T) {
	smaller := func(db *Database) { db.Spec.Size = 1 }
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		reason  string
		object  *Database
		options []facadetest.Option
		want    kopf.Reason
		old     int
	}{
		"Create": {"without Old, the reason is create", orders(), nil, kopf.ReasonCreate, 0},
		"Update": {
			"a different Old is an update", orders(), []facadetest.Option{facadetest.Old(orders(smaller))},
			kopf.ReasonUpdate, 1,
		},
		"Delete": {
			"a deletionTimestamp is a deletion",
			orders(func(db *Database) { db.DeletionTimestamp = &now }), nil, kopf.ReasonDelete, 3,
		},
		"AskedDelete": {
			"ReasonDelete sets the deletionTimestamp", orders(),
			[]facadetest.Option{facadetest.Reason(kopf.ReasonDelete)}, kopf.ReasonDelete, 3,
		},
		"DeleteWithChange": {
			"a deletion with a different Old is not an update", orders(),
			[]facadetest.Option{facadetest.Old(orders(smaller)), facadetest.Reason(kopf.ReasonDelete)},
			kopf.ReasonDelete, 1,
		},
		"Resume": {
			"ReasonResume without Old is a resume", orders(),
			[]facadetest.Option{facadetest.Reason(kopf.ReasonResume)},
			kopf.ReasonResume, 3,
		},
		"ResumeWithChange": {
			"ReasonResume with a different Old is an update", orders(),
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
				t.Errorf("%s: got the error %v, reason %q, old size %d, want %q and %d", tc.reason, got.Err, reason,
					old,
					tc.want, tc.old)
			}
			if d := cmp.Diff(map[string]any{"status": map[string]any{"host": "gone"}}, got.Patch); d != "" {
				t.Errorf("the patch must contain only the changes of the handler: -want, +got:\n%s", d)
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
		t.Errorf("the handler must get both values: error %v, values %v and %v, id %q", got.Err, before, after, id)
	}
	if got.Object.Spec.Size != 5 {
		t.Errorf("the object must have the value after the change, got %d", got.Object.Spec.Size)
	}
	facadetest.NewChange(orders(), facadetest.Field("spec.size", 3, nil)).Call(t.Context(), resize)
	if before == nil || after != nil {
		t.Errorf("a nil value must be passed as absent: got %v, %v", before, after)
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
		t.Errorf("a temporary error must keep the patch and retry in an hour: got %+v", got)
	}
	got = c.Call(t.Context(), fail, kopf.Retries(5))
	if !errors.Is(got.Err, failed) || !got.Final || got.Patch != nil {
		t.Errorf("the fifth attempt must be final, without a new patch: got %+v", got)
	}
	if d := cmp.Diff([]int{3, 4}, attempts); d != "" {
		t.Errorf("the numbers of the attempts: -want, +got:\n%s", d)
	}
	got = c.Call(t.Context(), fail, kopf.Retries(5))
	if got.Called || got.Err == nil {
		t.Errorf("a finished handler must not be called again: got %+v", got)
	}
	contains(t, errorText(got.Err), "the function was not called", `"create"`)
}

func TestTimeoutCountsFromTheStart(t *testing.T) {
	c := facadetest.NewChange(orders(), facadetest.Started(time.Now().Add(-time.Hour)))
	got := c.Call(t.Context(), func(context.Context, *DatabaseChange) error { return nil }, kopf.Timeout(time.Minute))
	if got.Called || !got.Final || got.Err == nil {
		t.Errorf("a handler past its timeout must not be called: got %+v", got)
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
		t.Errorf("fields that were changed in place: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(orders(func(db *Database) { db.Spec.Owner = "bob" }), got.Object); d != "" {
		t.Errorf("changes in place must be discarded: -want, +got:\n%s", d)
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
		t.Errorf("want the patch in the latest object after Flush: got the error %v, latest %q, object %+v",
			got.Err, seen, got.Object.Status)
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
		t.Errorf("want the host in the object: got the errors %v and %v, host %q", got.Err, err, host)
	}
}
