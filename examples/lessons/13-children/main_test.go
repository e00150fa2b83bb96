package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestServe calls the handler as a function. A fake client replaces the cluster.
func TestServe(t *testing.T) {
	cluster := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&appsv1.Deployment{}).Build()
	c := facadetest.NewChange(newWebsite(), facadetest.Client(cluster), facadetest.Owns(&appsv1.Deployment{}))
	if got := c.Call(t.Context(), serve); got.Awaited != "Deployment.apps home" {
		t.Fatalf("want a wait for the server, got %q and the error %v", got.Awaited, got.Err)
	}
	makeAvailable(t, cluster)
	if got := c.Call(t.Context(), serve); got.Err != nil || !got.Final {
		t.Errorf("want a success, got the error %v", got.Err)
	}
}

// TestOperator runs the whole operator against an API server in memory, in virtual time.
func TestOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, server := newCluster(t)
		r := facadetest.Start(t, newOperator(), facadetest.Against(memapi.Config(server)))
		r.Ready()
		if err := cluster.Create(t.Context(), newWebsite()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Minute) // one minute more than the limit of the wait
		var got []string
		for _, call := range r.Calls() {
			got = append(got, call.Handler+": "+call.Outcome)
		}
		if d := cmp.Diff([]string{"serve: retry", "serve: failure"}, got); d != "" {
			t.Errorf("calls of handlers (-want, +got):\n%s", d)
		}
		r.Quiet(24 * time.Hour)
	})
}

// TestCrash kills the operator while it waits, and starts another one.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, server := newCluster(t)
		first := facadetest.Start(t, newOperator(), facadetest.Against(memapi.Config(server)))
		first.Ready()
		if err := cluster.Create(t.Context(), newWebsite()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		first.Kill()
		makeAvailable(t, cluster) // while no operator runs
		second := facadetest.Start(t, newOperator(), facadetest.Against(memapi.Config(server)))
		second.Await("The website is online", time.Minute)
	})
}

func newWebsite() *v1.Website {
	return &v1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"},
		Spec:       v1.WebsiteSpec{Title: "Hello"},
	}
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	types := runtime.SchemeBuilder{clientgoscheme.AddToScheme, v1.AddToScheme}
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newCluster returns an API server in memory that has the CRD, and a client of it.
func newCluster(t testing.TB) (client.Client, *memapi.Server) {
	t.Helper()
	definitions, err := memapi.Definitions("../../getting-started/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := memapi.New()
	if err := server.Define(definitions...); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(memapi.Config(server), client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c, server
}

// makeAvailable replaces the controller of Deployments.
func makeAvailable(t testing.TB, cluster client.Client) {
	t.Helper()
	var server appsv1.Deployment
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "home"}, &server); err != nil {
		t.Fatal(err)
	}
	server.Status.ObservedGeneration, server.Status.AvailableReplicas = server.Generation, 1
	if err := cluster.Status().Update(t.Context(), &server); err != nil {
		t.Fatal(err)
	}
}
