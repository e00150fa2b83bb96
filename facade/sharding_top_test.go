package kopf_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/sharing"
	"github.com/kopf-runtime/kopf-runtime/peering/election"
)

// TestTop shows what the command top reads: one list shows the replicas of all namespaces with their ranges. Without a
// right to that, it reads the namespace of the kubeconfig. A killed replica is shown as one that does not run.
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
		lookup := sharing.Lookup{Operator: operator, Lease: types.NamespacedName{
			Name: election.LeaseName(operator, nil, nil)}}
		read := func() (sharing.Report, error) { return sharing.Read(t.Context(), memapi.Config(connection), lookup) }
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "does not share its objects") {
			t.Errorf("without Leases, the error must say so: %v", err)
		}
		w := &sharedWork{t: t, current: map[string]string{}, calls: map[string]int{},
			objects: map[string]map[string]int{}}
		first := startReplica(t, server, w, "first", 8)
		startReplica(t, server, w, "second", 8)
		time.Sleep(time.Minute)
		lists = 0
		report, err := read()
		if err != nil || lists != 1 || report.Err() != nil {
			t.Fatalf("%d requests, error %v, %v", lists, err, report.Err())
		}
		if got := report.Groups[0]; len(report.Groups) != 1 || got.Shards != 8 || len(got.Replicas) != 2 ||
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
