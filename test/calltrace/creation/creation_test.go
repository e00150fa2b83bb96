package creation_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/test/calltrace/record"
)

// TestCreation writes the calls into the file that CALLTRACE names, if it names one.
func TestCreation(t *testing.T) {
	var calls []record.Call
	handled := 0
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Install(memapi.Resource{
			Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
			StatusSubresource: true,
		})
		stop := operate(t, server, &handled)
		time.Sleep(90 * time.Second) // virtual: until all is quiet, and half a minute off the bookmarks of watches
		users, err := client.New(memapi.Config(server), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Widget",
			"metadata": map[string]any{"namespace": "default", "name": "one"}, "spec": map[string]any{"size": int64(1)},
		}}
		record.Begin()
		if err := users.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second) // virtual: until all is quiet
		calls = record.End()
		stop()
	})
	if handled != 1 {
		t.Errorf("the handler was called %d times for one creation", handled)
	}
	if path := os.Getenv("CALLTRACE"); path != "" {
		data, err := json.Marshal(calls)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// operate runs an operator with one handler, and gives what ends it.
func operate(t *testing.T, server *memapi.Server, handled *int) (stop func()) {
	t.Helper()
	connection := server.Connect()
	connection.After = func(context.Context, memapi.Request) error {
		// virtual: the operator's own changes come by its watch before the answers to its writes
		time.Sleep(time.Second)
		return nil
	}
	m, err := ctrl.NewManager(memapi.Config(connection), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), HealthProbeBindAddress: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	op := kopf.New("creation.example.org")
	type Change = kopf.Change[*unstructured.Unstructured]
	kopf.ForResource(op, "example.org/v1", "widgets").OnCreate("made", func(_ context.Context, c *Change) error {
		*handled++
		return nil
	})
	if err := op.SetupWithManager(m); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Start(ctx); err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
