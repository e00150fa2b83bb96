package explorer_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// setStatus writes a field of the status, and overwrites its former value.
func setStatus(p kopf.Call[*kopf.Unstructured], field string, value any) {
	p.TryPatch(func(o *kopf.Unstructured) error { return kopf.SetField(o, "status."+field, value) })
}

// sizeOf returns the field that the tests edit.
func sizeOf(o *kopf.Unstructured) string { return kopf.GetFieldOr(o, "spec.size", "small") }

// TestStartsThatWrite explores correct operators that write something at each start. Such a write is not a difference
// to the uncut run.
func TestStartsThatWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	cases := map[string]struct {
		reason   string
		register func(op *kopf.Operator, all kopf.Selection[*kopf.Unstructured])
	}{
		"OnChild": {
			reason: "a start reports all children, as in the example of docs/children.md",
			register: func(_ *kopf.Operator, dbs kopf.Selection[*kopf.Unstructured]) {
				dbs.Owns(&corev1.Service{})
				kopf.OnChild(dbs, "address", func(
					_ context.Context, e *kopf.ChildEvent[*kopf.Unstructured, *corev1.Service],
				) error {
					setStatus(e, "host", e.Child.Spec.ClusterIP)
					return nil
				})
				dbs.On("service", kopf.CreateUpdateResume(), func(ctx context.Context, c *change) error {
					return c.Ensure(ctx, &corev1.Service{
						ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Object.GetName()},
						Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
					})
				})
			},
		},
		"OnEvent": {
			reason: "a start reports all objects as listed",
			register: func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				all.OnEvent("listed", func(_ context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
					if e.Type == kopf.WatchEventListed {
						setStatus(e, "listed", sizeOf(e.Object))
					}
					return nil
				})
			},
		},
		"Timer": {
			reason: "a start ticks at once instead of a week later",
			register: func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				all.Timer("weekly", 7*24*time.Hour, func(_ context.Context, r *kopf.Task[*kopf.Unstructured]) error {
					setStatus(r, "ticked", sizeOf(r.Latest()))
					return nil
				})
			},
		},
		"Daemon": {
			reason: "a start runs the daemon with the present object",
			register: func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				all.Daemon("begin", func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
					setStatus(r, "began", sizeOf(r.Latest()))
					if err := r.Flush(ctx); err != nil {
						return err
					}
					<-r.Stopping()
					return nil
				})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := explorer.Search(t, func() explorer.Scenario {
				s := plain(tc.register)()
				s.Play = func(p *explorer.Play) {
					orders := database("orders")
					p.Create(orders)
					p.Settle()
					p.Edit(orders, func() { _ = kopf.SetField(orders, "spec.size", "large") })
				}
				return s
			}, explorer.CutsOnly(), explorer.Courses(12))
			if len(report.Violations) > 0 || report.Played == 0 {
				t.Errorf("%s: %s", tc.reason, report)
			}
		})
	}
}
