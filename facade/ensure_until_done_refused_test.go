package kopf_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestEnsureUntilDoneWithoutAMemory shows that, if the completion of a Job cannot be recorded on the parent, the
// operator retries at growing intervals and sends nothing that the API server must refuse.
func TestEnsureUntilDoneWithoutAMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, tc := range map[string]struct {
		reason      string
		block       func(h ensureFixture, isRefused *atomic.Bool)
		maxRequests int // requests in an hour
		message     string
	}{
		"Refused": {
			"a write that a webhook denies is retried at growing intervals",
			func(_ ensureFixture, isRefused *atomic.Bool) { isRefused.Store(true) },
			18, "Forbidden",
		},
		"Full": {
			"a record that does not fit beside other annotations is not sent",
			func(h ensureFixture, _ *atomic.Bool) {
				h.api.Edit(houses, "default", "home", func(house map[string]any) {
					one := &unstructured.Unstructured{Object: house}
					annotations, size := one.GetAnnotations(), 0
					delete(annotations, "full")
					for key, value := range annotations {
						size += len(key) + len(value)
					}
					annotations["full"] = strings.Repeat("x", 256<<10-size-len("full"))
					one.SetAnnotations(annotations)
				})
			},
			0, "the record of 1 children takes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				isRefused, requests, log := &atomic.Bool{}, &atomic.Int64{}, &lines{}
				way := h.api.Connect()
				way.Before = func(_ context.Context, r memapi.Request) error {
					if r.Resource.Plural != "houses" || r.Verb != "patch" || !isRefused.Load() {
						return nil
					}
					requests.Add(1)
					return memapi.NewRefusal(http.StatusForbidden)
				}
				op := kopf.New("test.example.org")
				s := kopf.ForResource(op, "test.example.org/v1", "houses")
				s.Owns(newJob())
				s.On("backup", []kopf.Reason{kopf.ReasonCreate}, func(ctx context.Context, c *houseChange) error {
					return c.Ensure(ctx, kopf.UntilDone(backup(c)))
				})
				stop := operate(h.t, way, op, funcr.New(log.add, funcr.Options{}))
				h.createHouse()
				h.waitForRepairs()
				for range 2 { // the operator first shrinks its own annotations, which makes room again
					tc.block(h, isRefused)
					h.waitForRepairs()
				}
				version := h.house().GetResourceVersion()
				h.setJobCondition("Complete")
				h.sleep(time.Hour)
				stop()
				if got := int(requests.Load()); got > tc.maxRequests || h.house().GetResourceVersion() != version {
					t.Errorf("%s: got %d requests, want at most %d; the parent has version %s", tc.reason, got,
						tc.maxRequests,
						h.house().GetResourceVersion())
				}
				failed := log.with("Failed to remember that children are done")
				if len(failed) == 0 || len(failed) > 18 {
					t.Fatalf("%s: want 1 to 18 log lines, got %d: %q", tc.reason, len(failed), failed)
				}
				for _, want := range []string{
					tc.message, `"name"="home"`, `"annotations"=["test.example.org/children-of.backup"]`,
					`"after"="5s"`,
				} {
					if !strings.Contains(failed[0], want) {
						t.Errorf("%s: no %q in %s", tc.reason, want, failed[0])
					}
				}
			})
		})
	}
}
