package facadetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var shopResource = memapi.Resource{
	Group: "example.org", Version: "v1", Kind: "Shop", Plural: "shops", Namespaced: true, StatusSubresource: true,
}

func newShop(name string) *kopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Shop",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec":     map[string]any{"owner": "ann", "size": int64(1)},
	}}
}

type (
	shopChange = kopf.Change[*kopf.Unstructured]
	shopRun    = kopf.Task[*kopf.Unstructured]
)

// callCounter counts the calls inside of the handlers, so that runs with and without the kit can be compared.
type callCounter struct {
	mu    sync.Mutex
	calls map[string]int
}

func newCallCounter() *callCounter { return &callCounter{calls: map[string]int{}} }

func (n *callCounter) count(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[id]++
}

// newShopOperator returns an operator with an index and ten handlers of all families that need no server.
func newShopOperator(calls *callCounter) *kopf.Operator {
	// It is the only operator of a cluster with one kind, so it does not scan for peers and kinds every minute.
	op := kopf.New("shopkeeper.example.org", kopf.Settings{
		Peering: kopf.PeeringSettings{Standalone: true}, ScanningDisabled: true,
	})
	shops := kopf.ForResource(op, "shops")
	byOwner := kopf.NewIndex(shops, "by-owner", func(
		_ context.Context, shop *kopf.Unstructured) (map[string]string, error,
	) {
		return map[string]string{kopf.GetFieldOr(shop, "spec.owner", ""): shop.GetName()}, nil
	})
	shops.OnCreate("provision", func(_ context.Context, c *shopChange) error {
		calls.count("provision")
		if c.Retry < 2 {
			return kopf.Temporary(errors.New("no address yet"), 20*time.Minute)
		}
		c.TryPatch(
			func(shop *kopf.Unstructured) error { return kopf.SetField(shop, "status.address", "1 High Street") },
		)
		return nil
	})
	shops.OnCreate("furnish", calls.furnish)
	shops.OnCreate("register", func(_ context.Context, c *shopChange) error {
		calls.count("register")
		c.SetResult(byOwner.Count(kopf.GetFieldOr(c.Object, "spec.owner", "")))
		return nil
	})
	shops.OnUpdate("resize", func(context.Context, *shopChange) error { calls.count("resize"); return nil },
		kopf.InField("spec.size"))
	shops.OnField("sell", "spec.owner", func(context.Context, *shopChange) error { calls.count("sell"); return nil })
	shops.OnResume("take-up", func(context.Context, *shopChange) error { calls.count("take-up"); return nil })
	shops.OnDelete("close", func(_ context.Context, c *shopChange) error {
		calls.count("close")
		if c.Retry == 0 {
			return kopf.Temporary(errors.New("customers inside"), 30*time.Minute)
		}
		return nil
	})
	shops.OnEvent(
		"see",
		func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error { calls.count("see"); return nil },
	)
	shops.Daemon("guard", calls.guard)
	shops.Timer("sweep", 2*time.Hour, func(_ context.Context, r *shopRun) error {
		calls.count("sweep")
		r.TryPatch(func(shop *kopf.Unstructured) error {
			return kopf.SetField(shop, "status.swept", kopf.GetFieldOr(shop, "status.swept", 0)+1)
		})
		return nil
	}, kopf.InitialDelay(15*time.Minute))
	return op
}

// furnish has two sub-handlers; the second one fails for an hour.
func (n *callCounter) furnish(_ context.Context, c *shopChange) error {
	n.count("furnish")
	c.Sub("shelves", func(context.Context, *shopChange) error { n.count("furnish/shelves"); return nil })
	c.Sub("till", func(_ context.Context, c *shopChange) error {
		n.count("furnish/till")
		if c.Retry == 0 {
			return kopf.Temporary(errors.New("sold out"), time.Hour)
		}
		return nil
	})
	return nil
}

// guard is a daemon with a round every eleven minutes. It runs for twelve hours, then for seven. Eleven minutes divide
// neither, so a round never coincides with the end, where the number of rounds would depend on chance.
func (n *callCounter) guard(ctx context.Context, r *shopRun) error {
	n.count("guard")
	rounds := time.NewTicker(11 * time.Minute)
	defer rounds.Stop()
	for {
		select {
		case <-r.Stopping():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-rounds.C:
			n.count("guard's rounds")
		}
	}
}
