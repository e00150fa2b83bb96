// Command 05-handlers has a handler for each cause. The kind has a Go type and a status subresource.
package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/05-handlers/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*v1.Database]

func main() {
	op := kopf.New("handlers.kopf.dev", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	dbs := kopf.For(op, &v1.Database{})
	dbs.OnCreate("provision", provision, kopf.Retries(5))
	dbs.OnUpdate("resize", resize)
	dbs.OnResume("reconnect", reconnect)
	dbs.OnDelete("destroy", destroy)

	// One function for several reasons has one id, and one record on the object.
	dbs.On("announce", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete}, announce)

	// A filter returns another selection: this handler is for production databases.
	dbs.MatchingLabels("tier=production").OnCreate("alert", alert)
}

// provision writes the status through the Go type. The object may change before the patch is written, so the patch
// takes the size that was provisioned.
func provision(ctx context.Context, c *Change) error {
	size := c.Object.Spec.Size
	if size > 100 {
		return kopf.Permanent(fmt.Errorf("a database of %d GiB is too large", size))
	}
	host := c.Object.Name + ".databases.example.org"
	log.FromContext(ctx).Info("Provisioned", "host", host)
	c.Info("Provisioned", "The database is at "+host)
	c.Patch(func(db *v1.Database) {
		db.Status.Phase, db.Status.Host, db.Status.Size = v1.PhaseReady, host, size
	})
	return nil
}

// resize compares with the status, which has the accepted size: a refused one is in c.Old the next time.
func resize(ctx context.Context, c *Change) error {
	before, now := c.Object.Status.Size, c.Object.Spec.Size
	if before == now {
		return nil
	}
	if now < before {
		c.Warn("ShrinkingRefused", fmt.Sprintf("The database keeps its %d GiB", before))
		return kopf.Permanent(fmt.Errorf("a database cannot shrink"))
	}
	log.FromContext(ctx).Info("Resized", "from", before, "to", now)
	c.Patch(func(db *v1.Database) { db.Status.Size = now })
	return nil
}

// reconnect is called once for each database that the operator handled before it started.
func reconnect(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Reconnected", "host", c.Object.Status.Host)
	return nil
}

func destroy(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Destroyed", "host", c.Object.Status.Host)
	return nil
}

// announce is called for several reasons. c.Reason is the present one.
func announce(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Announced", "owner", c.Object.Spec.Owner, "changes", len(c.Diff))
	return nil
}

func alert(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("The people on call know of the new database", "owner", c.Object.Spec.Owner)
	return nil
}
