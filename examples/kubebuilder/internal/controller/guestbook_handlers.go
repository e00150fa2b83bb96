package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one guestbook.
type Change = kopf.Change[*webappv1.Guestbook]

// guestbookHandlers is shared by the handlers. The startup opens the archive before the first of them is called.
type guestbookHandlers struct {
	archive *os.File
}

// RegisterHandlers registers the handlers of guestbooks. They run beside the reconciler of the project.
func RegisterHandlers(op *kopf.Operator) {
	h := &guestbookHandlers{}
	op.OnStartup("open", h.open, kopf.Retries(3), kopf.Timeout(time.Minute))
	op.OnCleanup("close", h.close)
	guestbooks := kopf.For(op, &webappv1.Guestbook{})
	guestbooks.OnCreate("invite", func(_ context.Context, c *Change) error {
		c.Patch(func(g *webappv1.Guestbook) { g.Status.Invitation = "Please sign " + g.Spec.Title })
		return nil
	})
	guestbooks.OnUpdate("announce", func(_ context.Context, c *Change) error {
		if c.Old.Spec.Title != c.Object.Spec.Title {
			c.Info("Renamed", fmt.Sprintf("%q is now %q", c.Old.Spec.Title, c.Object.Spec.Title))
			c.Patch(func(g *webappv1.Guestbook) { g.Status.Invitation = "Please sign " + g.Spec.Title })
		}
		return nil
	})
	guestbooks.OnDelete("archive", h.keep)
}

// open is called in the process that leads, before the first handler. Reconcilers do not wait for it.
func (h *guestbookHandlers) open(ctx context.Context, _ *kopf.Activity) (err error) {
	name := filepath.Join(os.TempDir(), "guestbooks.archive")
	if h.archive, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return kopf.Temporary(fmt.Errorf("opening the archive: %w", err), 5*time.Second)
	}
	log.FromContext(ctx).Info("Opened the archive", "name", name)
	return nil
}

// keep is called for each guestbook that is deleted. A finalizer holds the guestbook until keep has succeeded.
func (h *guestbookHandlers) keep(_ context.Context, c *Change) error {
	line := fmt.Sprintf("%s/%s: %s\n", c.Object.Namespace, c.Object.Name, c.Object.Spec.Title)
	if _, err := h.archive.WriteString(line); err != nil {
		return fmt.Errorf("keeping the entries: %w", err)
	}
	c.Info("Archived", fmt.Sprintf("The entries of %q are kept elsewhere", c.Object.Spec.Title))
	return nil
}

// close is called when all handlers have ended.
func (h *guestbookHandlers) close(ctx context.Context, _ *kopf.Activity) error {
	if err := h.archive.Close(); err != nil {
		return kopf.Permanent(err)
	}
	log.FromContext(ctx).Info("Closed the archive")
	return nil
}
