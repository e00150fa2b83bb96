package facadetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// newNotingOperator returns an operator that handles all changes of config maps. An operator runs only once, so each
// start needs another one.
func newNotingOperator(settings ...kopf.Settings) *kopf.Operator {
	op := kopf.New("clerk.example.org", settings...)
	maps := kopf.For(op, &corev1.ConfigMap{})
	note := func(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return nil }
	maps.On("note", kopf.CreateUpdateResume(), note)
	maps.OnDelete("burn", note)
	return op
}

func TestStopAndStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		createConfigMap(t, server, "changed")
		createConfigMap(t, server, "deleted")
		createConfigMap(t, server, "same")
		first := facadetest.Start(t, newNotingOperator(), facadetest.Against(memapi.Config(server)))
		first.Settle(time.Hour, 24*time.Hour)
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}

		changeConfigMap(t, server, "changed", "blue")
		removeConfigMap(t, server, "deleted") // the finalizer holds the object
		createConfigMap(t, server, "made")
		time.Sleep(24 * time.Hour)
		if calls := len(first.Calls()); calls != 3 {
			t.Errorf("a stopped operator must not be called: %v", lines(first.Calls()))
		}

		second := facadetest.Start(t, newNotingOperator(), facadetest.Against(memapi.Config(server)))
		second.Settle(time.Hour, 24*time.Hour)
		facadetest.Golden(t, "testdata/restart.golden",
			"the first one:", first.Calls(), "the second one:", second.Calls())
	})
}

// TestTwoOperators runs two operators of one peering. One acts, the other one waits, and takes over the changes that
// happened after the first one stopped.
func TestTwoOperators(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Install(peeringResource)
		server.Put(peeringResource, map[string]any{"metadata": map[string]any{"name": "clerks"}})
		start := func(identity string, priority int) *facadetest.Runner {
			settings := kopf.Settings{Peering: kopf.PeeringSettings{
				Name: "clerks", Identity: identity, Priority: priority,
			}}
			return facadetest.Start(t, newNotingOperator(settings), facadetest.Against(memapi.Config(server)))
		}
		deputy, chief := start("deputy", 0), start("chief", 100)
		chief.Ready()
		createConfigMap(t, server, "first")
		chief.Settle(time.Hour, 24*time.Hour)
		if err := chief.Stop(); err != nil {
			t.Fatal(err)
		}
		createConfigMap(t, server, "second")
		deputy.Settle(time.Hour, 24*time.Hour)
		facadetest.Golden(t, "testdata/peers.golden", "the chief:", chief.Calls(), "the deputy:", deputy.Calls())
	})
}

// peeringResource is the kind of the peering objects.
var peeringResource = memapi.Resource{
	Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering",
	StatusSubresource: true,
}

func changeConfigMap(t testing.TB, server *memapi.Server, name, colour string) {
	t.Helper()
	object := configMap(name)
	before := client.MergeFrom(object.DeepCopy())
	object.Data = map[string]string{"colour": colour}
	if err := newUserClient(t, server).Patch(t.Context(), object, before); err != nil {
		t.Fatal(err)
	}
}
