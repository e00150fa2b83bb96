package controller

import (
	"context"
	"fmt"

	webappv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// RegisterHandlers adds what is easier to say as "when this happens, do that" than as a reconciliation.
func RegisterHandlers(op *kopf.Operator) {
	guestbooks := kopf.For(op, &webappv1.Guestbook{})
	guestbooks.OnCreate("invite", func(_ context.Context, c *kopf.Change[*webappv1.Guestbook]) error {
		c.Patch(func(g *webappv1.Guestbook) { g.Status.Invitation = "Please sign " + g.Spec.Title })
		return nil
	})
	guestbooks.OnUpdate("announce", func(_ context.Context, c *kopf.Change[*webappv1.Guestbook]) error {
		if c.Old.Spec.Title != c.Object.Spec.Title {
			c.Info("Renamed", fmt.Sprintf("%q is now %q", c.Old.Spec.Title, c.Object.Spec.Title))
			c.Patch(func(g *webappv1.Guestbook) { g.Status.Invitation = "Please sign " + g.Spec.Title })
		}
		return nil
	})
	guestbooks.OnDelete("archive", func(_ context.Context, c *kopf.Change[*webappv1.Guestbook]) error {
		c.Info("Archived", fmt.Sprintf("The entries of %q are kept elsewhere", c.Object.Spec.Title))
		return nil
	})
}
