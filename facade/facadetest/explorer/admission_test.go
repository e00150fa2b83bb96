package explorer_test

import (
	"context"
	"net/http"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// TestAdmission explores an operator whose creations depend on its own mutating webhook. Its webhooks fail while the
// operator is dead, and the clients retry.
func TestAdmission(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	explorer.Explore(t, func() explorer.Scenario {
		s := plain(func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
			all.Mutate("defaults", func(_ context.Context, a *kopf.Admission[*kopf.Unstructured]) error {
				if kopf.GetFieldOr(a.Object, "spec.class", "") == "" {
					return kopf.SetField(a.Object, "spec.class", "standard")
				}
				return nil
			}, kopf.Operations("CREATE"))
			all.Validate("size", func(_ context.Context, a *kopf.Admission[*kopf.Unstructured]) error {
				if sizeOf(a.Object) == "huge" {
					return kopf.Deny(http.StatusForbidden, "too large")
				}
				return nil
			})
			all.On("serve", kopf.CreateUpdateResume(), func(_ context.Context, c *change) error {
				setStatus(c, "serves", kopf.GetFieldOr(c.Object, "spec.class", "nothing")+" "+sizeOf(c.Object))
				return nil
			})
		})()
		s.Play = func(p *explorer.Play) {
			orders := database("orders")
			p.Create(orders)
			p.Edit(orders, func() { _ = kopf.SetField(orders, "spec.size", "large") })
			p.Settle()
			if err := p.Client.Get(p.Context(), client.ObjectKeyFromObject(orders), orders); err != nil {
				p.T.Fatal(err)
			}
			if got := kopf.GetFieldOr(orders, "status.serves", ""); got != "standard large" {
				p.T.Errorf("each creation must have the default: got %q", got)
			}
		}
		return s
	}, explorer.Courses(40))
}
