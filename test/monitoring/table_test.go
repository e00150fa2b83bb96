package monitoring_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// family is a metric with what documents say of it.
type family struct {
	Type   string
	Labels []string
}

// recording is a registry that records the registered metrics: families without a value cannot be collected.
type recording struct {
	*prometheus.Registry

	mu         sync.Mutex
	collectors []prometheus.Collector
}

func (r *recording) Register(c prometheus.Collector) error {
	err := r.Registry.Register(c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.collectors = append(r.collectors, c)
	}
	return err
}

// descPattern is the text that client_golang has of a family.
var descPattern = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// families are all that were registered, be there values or not.
func (r *recording) families(t *testing.T) map[string]family {
	t.Helper()
	all := map[string]family{}
	for _, c := range r.collectors {
		kind := "gauge"
		switch c.(type) {
		case *prometheus.CounterVec:
			kind = "counter"
		case *prometheus.HistogramVec:
			kind = "histogram"
		}
		descriptions := make(chan *prometheus.Desc, 100)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			found := descPattern.FindStringSubmatch(d.String())
			if found == nil {
				t.Fatalf("client_golang describes a family in another way now: %s", d)
			}
			own := kind
			if strings.HasSuffix(found[1], "_total") {
				own = "counter" // a collector of states can have counters
			}
			all[found[1]] = family{own, strings.Split(found[2], ",")}
		}
	}
	return all
}

const page = "../../docs/metrics.md"

// table is that of the page.
func table(t *testing.T) map[string]family {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]family{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `kopf_") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		if _, twice := all[name]; twice {
			t.Errorf("%s has two rows", name)
		}
		one := family{Type: strings.TrimSpace(cells[2])}
		for label := range strings.SplitSeq(cells[3], ",") {
			one.Labels = append(one.Labels, strings.Trim(label, " `"))
		}
		all[name] = one
	}
	return all
}

// newFullOperator is an operator with handlers of all families, whose replicas share the objects.
func newFullOperator() *kopf.Operator {
	op := kopf.New("shops.example.org", kopf.Settings{Sharding: kopf.ShardingSettings{Shards: 2}})
	all := kopf.ForResource(op, "shops")
	kopf.NewIndex(all, "by-name", func(_ context.Context, shop *kopf.Unstructured) (map[string]int, error) {
		return map[string]int{shop.GetName(): 1}, nil
	})
	all.OnCreate("provision", func(_ context.Context, c *change) error {
		c.Info("Provisioning", "It takes its time.")
		if c.Retry == 0 {
			return kopf.Temporary(errNotYet, time.Minute)
		}
		return nil
	})
	all.OnEvent("note", func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error { return nil })
	all.Daemon("watch", func(_ context.Context, r *run) error { <-r.Stopping(); return nil })
	all.Timer("count", time.Minute, func(context.Context, *run) error { return nil })
	return op
}

// TestTheTableHasEveryMetric shows that the page lists every registered metric, and that the values follow the rules of
// Prometheus.
func TestTheTableHasEveryMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, registry := memapi.New(), &recording{Registry: prometheus.NewRegistry()}
		server.Install(shops)
		r := facadetest.Start(t, newFullOperator(), facadetest.Against(memapi.Config(server)),
			facadetest.Settings(kopf.RunSettings{Metrics: registry}))
		r.Ready()
		server.Put(shops, map[string]any{"metadata": map[string]any{"namespace": "default", "name": "a"}})
		time.Sleep(10 * time.Second)
		waiting := valuedFamilies(t, registry)
		time.Sleep(5 * time.Minute)
		if d := cmp.Diff(table(t), registry.families(t)); d != "" {
			t.Errorf("%s and the registry differ, -page, +registry:\n%s", page, d)
		}
		for name := range registry.families(t) {
			// There are no children or loops here, and no other client removes annotations.
			silent := []string{"kopf_children_repaired_total", "kopf_memory_losses_total", "kopf_handler_loops_total"}
			if !slices.Contains(waiting, name) && !slices.Contains(valuedFamilies(t, registry), name) &&
				!slices.Contains(silent, name) {
				t.Errorf("%s never has a value", name)
			}
		}
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// valuedFamilies returns the names of the families with values, and checks all of them.
func valuedFamilies(t *testing.T, registry *recording) (names []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("error %v, problems: %s", err, fmt.Sprint(problems))
	}
	for _, family := range families {
		names = append(names, family.GetName())
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if value := label.GetValue(); value == "a" || value == "default" {
					t.Errorf("%s has the object in its label %s", family.GetName(), label.GetName())
				}
			}
		}
	}
	return names
}
