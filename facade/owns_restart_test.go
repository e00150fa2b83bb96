package kopf_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// childEvents collects the event types of OnChild calls since the last read.
type childEvents struct {
	mu     sync.Mutex
	events []string
}

func (c *childEvents) add(kind kopf.WatchEventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == kopf.WatchEventListed {
		kind = "listed"
	}
	c.events = append(c.events, string(kind))
}

func (c *childEvents) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.events)
	c.events = nil
	return strings.Join(all, ",")
}

// serviceOperator returns an operator that declares a Service for each ConfigMap at each start, and records the events
// of services.
func serviceOperator(events *childEvents) *kopf.Operator {
	op := kopf.New("services.example.org")
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.Owns(&corev1.Service{})
	kopf.OnChild(maps, "note", func(
		_ context.Context, e *kopf.ChildEvent[*corev1.ConfigMap, *corev1.Service],
	) error {
		events.add(e.Type)
		return nil
	})
	maps.On("service", kopf.CreateUpdateResume(), func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		return c.Ensure(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Object.Name},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
		})
	})
	return op
}

// TestChildrenListedAtStart shows that a start reports all existing children, including those that a handler declares
// again without a change.
func TestChildrenListedAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, events := memapi.New(), &childEvents{}
		people := clientOf(t, server)
		first := facadetest.Start(t, serviceOperator(events), facadetest.Against(memapi.Config(server)))
		first.Ready()
		if err := people.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"},
		}); err != nil {
			t.Fatal(err)
		}
		first.Settle(time.Hour, 24*time.Hour)
		if got := events.take(); got != "" {
			t.Errorf("writes of Ensure must not be reported: got %q", got)
		}
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		second := facadetest.Start(t, serviceOperator(events), facadetest.Against(memapi.Config(server)))
		second.Settle(time.Hour, 24*time.Hour)
		if got := events.take(); got != "listed" {
			t.Errorf("a start must report the child once, as listed: got %q", got)
		}
	})
}
