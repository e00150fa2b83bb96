package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// TestWaitForAnyObject shows that WaitFor waits for an object without an owner, and does not poll: while the object
// does not exist, while it changes, and over a restart.
func TestWaitForAnyObject(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		begin := func(s houseSel) {
			s.Watches(&corev1.ConfigMap{})
			s.On("wait", nonDeleteReasons[:2], told.waitHandler(ignoreChange, 24*time.Hour), kopf.Retries(1))
		}
		_, stop := h.run(begin)
		h.createHouseAndWait()
		told.want(t, "without the object, the handler waits", "call, retry 0")
		h.createUnownedRoom("bath", "tiles")
		told.want(t, "an object that does not match calls no handler")
		h.sleep(time.Hour)
		told.want(t, "the wait does not poll")
		stop()

		way, stop := h.run(begin)
		h.settle()
		told.want(t, "a restart calls the handler again", "call, retry 0")
		way.DrainRequests()
		h.sleep(time.Hour)
		h.editUndeclaredField("bath", "carpet")
		for _, r := range way.DrainRequests() {
			if r.Verb != "watch" {
				t.Errorf("the wait must not send a request: %s %s", r.Verb, r.Path)
			}
		}
		told.want(t, "an edit that does not match calls no handler")
		h.editUndeclaredField("bath", "ready")
		told.want(t, "an object that matches calls the handler", "call, retry 0", "done")
		if left := h.progress("wait"); left != "" {
			t.Errorf("the record must be removed: %s", left)
		}
		stop()
	})
}

// TestWaitForObjectWithoutNamespace shows that an object of a cluster-scoped kind is awaited by its name.
func TestWaitForObjectWithoutNamespace(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var told childCalls
		_, stop := h.run(func(s houseSel) {
			s.Watches(&corev1.Namespace{})
			s.OnCreate("wait", func(_ context.Context, c *houseChange) error {
				told.note("call")
				team := &corev1.Namespace{}
				team.Name = "team"
				return kopf.WaitFor(c, team, func(*corev1.Namespace) bool { return true }, time.Hour)
			})
		})
		h.createHouseAndWait()
		told.want(t, "without the object, the handler waits", "call")
		team := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"},
		}}
		if err := h.directClient.Create(t.Context(), team); err != nil {
			t.Fatal(err)
		}
		h.waitForRepairs()
		told.want(t, "the new object calls the handler", "call")
		if left := h.progress("wait"); left != "" {
			t.Errorf("the record must be removed: %s", left)
		}
		stop()
	})
}

// TestWaitForErrors shows the errors of WaitFor for kinds that are not watched and for missing objects.
func TestWaitForErrors(t *testing.T) {
	tests := map[string]struct {
		reason  string
		watch   func(s houseSel)
		timeout time.Duration
		want    []string
	}{
		"NotWatched": {
			"the error for a kind that is not watched says how to watch it", func(houseSel) {}, time.Hour,
			[]string{"ConfigMap", "not watched", "Watches(&v1.ConfigMap{})", "register Owns", `"wait"`,
				"object default/home"},
		},
		"NoChild": {
			"with Owns, the timeout for an object that is not a child names Watches",
			func(s houseSel) { s.Owns(&corev1.ConfigMap{}) }, time.Minute,
			[]string{"ConfigMap bath", "no such child", "register Watches"},
		},
		"Absent": {
			"the timeout for a missing object names the object", func(s houseSel) { s.Watches(&corev1.ConfigMap{}) },
			time.Minute,
			[]string{"ConfigMap attic", "no such object", "object default/home"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var failure error
				_, stop := h.run(func(s houseSel) {
					tc.watch(s)
					s.OnCreate("wait", func(_ context.Context, c *houseChange) error {
						room := bath()
						if name == "Absent" {
							room.Name = "attic"
						}
						err := kopf.WaitFor(c, room, func(*corev1.ConfigMap) bool { return true }, tc.timeout)
						if execution.IsPermanent(err) || errors.Is(err, kopf.ErrWaitTimeout) {
							failure = err
						}
						return err
					})
				})
				h.createUnownedRoom("bath", "1")
				h.createHouseAndWait()
				if failure == nil {
					t.Fatalf("%s: want a failure", tc.reason)
				}
				for _, part := range tc.want {
					if !strings.Contains(failure.Error(), part) {
						t.Errorf("%s: %q is missing in: %v", tc.reason, part, failure)
					}
				}
				stop()
			})
		})
	}
}
