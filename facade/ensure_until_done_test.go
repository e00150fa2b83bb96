package kopf_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

var jobs = memapi.Resource{
	Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Namespaced: true, StatusSubresource: true,
}

// backup returns a Job whose image is set in the spec of the house.
func backup(c *houseChange) *kopf.Unstructured {
	job := newJob()
	job.SetName("backup")
	_ = kopf.SetField(job, "spec.template.spec", map[string]any{
		"restartPolicy": "Never",
		"containers":    []any{map[string]any{"name": "a", "image": kopf.GetFieldOr(c.Object, "spec.image", "first")}},
	})
	return job
}

func newJob() *kopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
}

func hasSucceeded(job *kopf.Unstructured) bool {
	return kopf.GetFieldOr(job, "status.succeeded", 0) > 0
}

// jobCase configures an operator with a Job.
type jobCase struct{ owns, waits, once bool }

func (c jobCase) start(h ensureFixture, heard *ensureErrors) (stop func()) {
	_, stop = c.connect(h, heard)
	return stop
}

// connect is like start, and also returns the connection of the operator.
func (c jobCase) connect(h ensureFixture, heard *ensureErrors) (way *memapi.Connection, stop func()) {
	return h.run(func(s houseSel) {
		if c.owns {
			s.Owns(newJob())
		}
		s.On("backup", nonDeleteReasons, heard.noting(func(ctx context.Context, change *houseChange) error {
			child := kopf.UntilDone(backup(change))
			if c.once {
				child = kopf.Once(child)
			}
			if err := change.Ensure(ctx, child); err != nil || !c.waits {
				return err
			}
			return kopf.WaitFor(change, backup(change), hasSucceeded, time.Hour)
		}), kopf.Backoff(10*time.Second))
	})
}

// job returns the Job; nil if it does not exist.
func (h ensureFixture) job() *kopf.Unstructured {
	if object := h.api.Object(jobs, "default", "backup"); object != nil {
		return &unstructured.Unstructured{Object: object}
	}
	return nil
}

func (h ensureFixture) jobUID() string {
	if job := h.job(); job != nil {
		return string(job.GetUID())
	}
	return "absent"
}

// setJobCondition sets the condition of the Job, as the controller of Jobs does.
func (h ensureFixture) setJobCondition(condition string) {
	h.t.Helper()
	h.api.Edit(jobs, "default", "backup", func(job map[string]any) {
		status := map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
		if condition == "Complete" {
			status["succeeded"] = int64(1)
		}
		job["status"] = status
	})
	h.waitForRepairs()
}

// deleteJob deletes the Job, as ttlSecondsAfterFinished does.
func (h ensureFixture) deleteJob() { h.api.Delete(jobs, "default", "backup"); h.waitForRepairs() }

// changeImage changes the image in the spec, which calls the handler.
func (h ensureFixture) changeImage(image string) {
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		house["spec"] = map[string]any{"image": image}
	})
	h.waitForRepairs()
}

// TestEnsureUntilDone shows that a completed and deleted Job is not created again by updates or a restart, and that
// another declaration creates a new Job.
func TestEnsureUntilDone(t *testing.T) {
	for name, c := range map[string]jobCase{
		"NotWatched": {}, "Watched": {owns: true}, "Waiting": {owns: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				heard := &ensureErrors{}
				stop := c.start(h, heard)
				h.createHouse()
				h.waitForRepairs()
				first := h.jobUID()
				h.setJobCondition("Complete")
				h.deleteJob()
				h.api.Edit(houses, "default", "home", func(house map[string]any) { // the declaration is the same
					house["spec"] = map[string]any{"other": "1"}
				})
				h.settle()
				if first == "absent" || h.jobUID() != "absent" {
					t.Errorf("a completed job is not created again: was %s, is %s", first, h.jobUID())
				}
				stop()
				stop = c.start(h, heard)
				h.settle()
				if err := heard.last(); h.jobUID() != "absent" || err != nil {
					t.Errorf("a restart does not create the completed job again: got %s, error %v", h.jobUID(), err)
				}
				h.changeImage("second")
				if second := h.jobUID(); second == first || second == "absent" {
					t.Errorf("another declaration creates a new job: got %s", second)
				}
				h.setJobCondition("Complete") // the job still exists
				third := h.jobUID()
				h.changeImage("third")
				if now := h.jobUID(); now == third || now == "absent" {
					t.Errorf("another declaration replaces a completed job: got %s, error %v", now, heard.last())
				}
				stop()
			})
		})
	}
}

// TestEnsureUntilDoneWatched shows that a Job that is deleted before its end is created again, and that the outcome
// is recorded without a call of the handler.
func TestEnsureUntilDoneWatched(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		stop := jobCase{owns: true}.start(h, heard)
		h.createHouse()
		h.waitForRepairs()
		first := h.jobUID()
		h.deleteJob()
		if now := h.jobUID(); now == first || now == "absent" {
			t.Errorf("a job that is deleted before its end is created again: got %s", now)
		}
		h.setJobCondition("Failed")
		record := h.house().GetAnnotations()["test.example.org/children-of.backup"]
		if !strings.Contains(record, ` failed"`) {
			t.Errorf("the record has the failure of the job: got %s", record)
		}
		stop()
		h.deleteJob()
		stop = jobCase{owns: true}.start(h, heard)
		h.settle()
		if now := h.jobUID(); now != "absent" {
			t.Errorf("a failed job is not created again: got %s", now)
		}
		stop()
	})
}

// TestEnsureUntilDoneWithAGapInTheWatch shows that a Job that ends and disappears in a gap of the watch is not
// created again, although a later list only shows that it is gone.
func TestEnsureUntilDoneWithAGapInTheWatch(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var isRefused atomic.Bool
		heard := &ensureErrors{}
		way, stop := jobCase{owns: true}.connect(h, heard)
		way.Before = func(_ context.Context, r memapi.Request) error {
			if isRefused.Load() && r.Resource.Plural == "jobs" && (r.Verb == "list" || r.Verb == "watch") {
				return memapi.NewRefusal(http.StatusServiceUnavailable)
			}
			return nil
		}
		defer stop()
		h.createHouse()
		h.waitForRepairs()
		first := h.jobUID()
		isRefused.Store(true)
		h.sleep(20 * time.Minute) // the running watch has ended
		h.setJobCondition("Complete")
		h.deleteJob()
		h.api.Compact()
		isRefused.Store(false)
		h.sleep(20 * time.Minute)
		if now := h.jobUID(); first == "absent" || now != "absent" {
			t.Errorf("a job that disappears in a gap is not created again: was %s, is %s", first, now)
		}
		record := h.house().GetAnnotations()["test.example.org/children-of.backup"]
		if !strings.Contains(record, ` vanished"`) {
			t.Errorf("the record says that the job has vanished: got %s", record)
		}
	})
}

// TestWaitForUntilDoneThatFails shows that the wait for a child that has failed and is deleted ends with a
// permanent error.
func TestWaitForUntilDoneThatFails(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		stop := jobCase{owns: true, waits: true}.start(h, heard)
		defer stop()
		h.createHouse()
		h.waitForRepairs()
		h.setJobCondition("Failed")
		if err := heard.last(); execution.IsPermanent(err) {
			t.Errorf("the failure of an existing job is not a permanent error: got %v", err)
		}
		h.deleteJob()
		heard.requireLast(t, "child Job.batch backup", "it has failed, and is gone")
		if !execution.IsPermanent(heard.last()) {
			t.Errorf("the failure of a deleted job is a permanent error: got %v", heard.last())
		}
	})
}

// TestEnsureOnceUntilDone shows that a child with Once and UntilDone is not created again, even by another
// declaration.
func TestEnsureOnceUntilDone(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		stop := jobCase{once: true}.start(h, heard)
		defer stop()
		h.createHouse()
		h.waitForRepairs()
		first := h.jobUID()
		h.changeImage("second")
		h.setJobCondition("Complete")
		h.changeImage("third")
		if now := h.jobUID(); now != first {
			t.Errorf("another declaration does not replace the job: was %s, is %s, error %v", first, now, heard.last())
		}
		h.deleteJob()
		h.changeImage("fourth")
		if now := h.jobUID(); now != "absent" || heard.last() != nil {
			t.Errorf("a deleted job is not created again: got %s, error %v", now, heard.last())
		}
	})
}

// TestEnsureUntilDoneReplacesNoStrangers shows that a forged record of a completed child does not delete the object
// of another owner.
func TestEnsureUntilDoneReplacesNoStrangers(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		h.createHouse()
		stranger := backup(&houseChange{Object: house()})
		stranger.SetNamespace("default")
		stranger.Object["status"] = map[string]any{"succeeded": int64(1)}
		h.api.Put(jobs, stranger.Object)
		before := h.jobUID()
		h.api.Edit(houses, "default", "home", func(house map[string]any) {
			one := &unstructured.Unstructured{Object: house}
			one.SetAnnotations(map[string]string{"test.example.org/children-of.backup": `{"parent":"` +
				string(one.GetUID()) + `","children":{"batch/v1/Job/default/backup":"` + before +
				`"},"runs":{"batch/v1/Job/default/backup":"forged succeeded"}}`})
		})
		stop := jobCase{owns: true}.start(h, heard)
		defer stop()
		h.settle()
		heard.requireLast(t, "Job.batch default/backup", "not a child of this parent")
		if now := h.jobUID(); now != before {
			t.Errorf("the job of another owner is kept: got %s, want %s", now, before)
		}
	})
}
