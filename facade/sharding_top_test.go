package kopf_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/peering/election"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// TestRangeMetrics shows the metrics of replicas that share the objects, and that other operators do not have them.
func TestRangeMetrics(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		start := func(name string, settings ...kopf.Settings) (*facadetest.Runner, func() map[string]float64) {
			op, registry := kopf.New(name, settings...), prometheus.NewRegistry()
			kopf.For(op, &corev1.ConfigMap{}).OnCreate("create",
				func(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return nil })
			runner := facadetest.Start(t, op, facadetest.Against(memapi.Config(server.Connect())),
				facadetest.Settings(kopf.RunSettings{Metrics: registry}))
			return runner, func() map[string]float64 { return rangeValues(t, registry) }
		}
		shared := kopf.Settings{Sharding: kopf.ShardingSettings{Shards: 4}}
		first, ofFirst := start("shared.example.org", shared)
		time.Sleep(time.Minute)
		_, ofSecond := start("shared.example.org", shared)
		_, ofOther := start("other.example.org")
		time.Sleep(time.Minute)
		want := map[string]float64{"kopf_ranges_held": 2, "kopf_ranges_unowned": 0, "kopf_replicas": 2,
			"kopf_oldest_unowned_range_age_seconds": 0,
			"kopf_range_moves_total acquired":       4,
			"kopf_range_moves_total left":           2, "kopf_range_moves_total lost": 0}
		if diff := cmp.Diff(want, ofFirst()); diff != "" {
			t.Errorf("the first replica gives two ranges to the second: -want, +got:\n%s", diff)
		}
		if got := ofOther(); len(got) > 0 {
			t.Errorf("an operator without sharding must not have metrics of ranges: %v", got)
		}
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		want["kopf_ranges_held"], want["kopf_replicas"], want["kopf_range_moves_total left"] = 4, 1, 0
		if diff := cmp.Diff(want, ofSecond()); diff != "" {
			t.Errorf("the second replica takes all: -want, +got:\n%s", diff)
		}
	})
}

// rangeValues returns the values of the metrics of ranges, by their names and the label of moves.
func rangeValues(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		name := family.GetName()
		if !strings.Contains(name, "_range") && name != "kopf_replicas" {
			continue
		}
		for _, one := range family.GetMetric() {
			key := name
			for _, label := range one.GetLabel() {
				if label.GetName() == "move" {
					key += " " + label.GetValue()
				}
			}
			values[key] = one.GetGauge().GetValue() + one.GetCounter().GetValue()
		}
	}
	return values
}

// TestTop shows what the command top reads: one list shows the replicas of all namespaces with their ranges. Without a
// right to that, it reads the namespace of the kubeconfig.
func TestTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const operator = "shared.example.org"
		server, lists, isLimited := memapi.New(), 0, false
		connection := server.Connect()
		connection.Before = func(_ context.Context, r memapi.Request) error {
			if lists++; isLimited && r.Namespace == "" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
			}
			return nil
		}
		lookup := clusterops.LeaseLookup{Operator: operator, Lease: types.NamespacedName{
			Name: election.LeaseName(operator, nil, nil)}}
		read := func() (clusterops.ReplicaReport, error) {
			return clusterops.ReadReplicas(t.Context(), memapi.Config(connection), lookup)
		}
		for limited, want := range map[bool]string{false: " in any namespace.", true: " in namespace default."} {
			isLimited = limited
			if _, err := read(); err == nil || !strings.Contains(err.Error(), "does not share its objects") ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("without Leases, the error must say so, and where they were searched (%q): %v", want, err)
			}
		}
		isLimited = false
		w := newSharedWork(t)
		first := startReplica(t, server, w, "first", 8)
		startReplica(t, server, w, "second", 8)
		time.Sleep(time.Minute)
		lists = 0
		report, err := read()
		if err != nil || lists != 1 || report.Err() != nil {
			t.Fatalf("%d requests, error %v, %v", lists, err, report.Err())
		}
		if got := report.Groups[0]; len(report.Groups) != 1 || got.Count != 8 || len(got.Replicas) != 2 ||
			len(got.Replicas[0].Ranges) != 4 || len(got.Replicas[1].Ranges) != 4 || len(got.Unowned) != 0 ||
			got.Namespace != "default" {
			t.Errorf("two replicas must share 8 ranges: %+v", got)
		}
		isLimited = true
		if limited, err := read(); err != nil || len(limited.Groups) != 1 || len(limited.Groups[0].Replicas) != 2 {
			t.Errorf("with rights in one namespace: %+v, %v", limited, err)
		}
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if report, err := read(); err != nil || len(report.Groups[0].Replicas) != 1 ||
			len(report.Groups[0].Replicas[0].Ranges) != 8 {
			t.Errorf("after the end of one: %+v, %v", report, err)
		}
	})
}

// TestTopCommand shows the exit codes and the output of the command: without Leases, with an elected leader, and
// without a process.
func TestTopCommand(t *testing.T) {
	server := memapi.New()
	server.Install(drainLeases)
	layout := election.LeaseName("test.example.org", nil, nil)
	putLayout := func(holder string) {
		label, group, _ := strings.Cut(sharding.LeaseSelector(layout), "=")
		server.Put(drainLeases, map[string]any{
			"metadata": map[string]any{
				"name": layout, "namespace": "ops", "labels": map[string]any{label: group},
				"annotations": map[string]any{"sharding.kopf.dev/shards": "2"}, // it counts for its own holder only
			},
			"spec": map[string]any{"holderIdentity": holder, "leaseDurationSeconds": int64(15)},
		})
	}
	kubeconfig := serve(t, server)
	for _, c := range []struct {
		reason, holder, args string
		code                 int
		want                 string
	}{
		{"an invalid name of a Lease is an error", "", "top --leader-elect-id a_b", 2, "the name of a Lease"},
		{"an operator without sharding is an error", "", "top", 1, "does not share its objects"},
		{"an elected leader is shown", "pod", "top", 0, "pod handles all objects"},
		{"the report can be read by programs", "pod", "top -o json", 0, `"namespace": "ops"`},
		{"the Leases of another name are those of another operator", "pod", "top --leader-elect-id mine", 1,
			`with the name "mine"`},
		{"an operator without a process is an error", "shards-2", "top", 1, "runs in namespace ops"},
	} {
		if c.holder != "" {
			putLayout(c.holder)
		}
		args := append(strings.Fields(c.args), "--kubeconfig", kubeconfig)
		code, out, errs := execute(t, newWidgetOperator(), args...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: %s: exit code %d, want %d with %q:\n%s%s", c.args, c.reason, code, c.code, c.want, out, errs)
		}
	}
}
