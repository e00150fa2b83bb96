package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// newScheme returns the types that the operator uses.
func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	types := runtime.SchemeBuilder{clientgoscheme.AddToScheme, v1.AddToScheme}
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newWebsite() *v1.Website {
	return &v1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"},
		Spec:       v1.WebsiteSpec{Title: "Cats & dogs"},
	}
}

// TestPublish calls one handler as a function. It needs no cluster.
func TestPublish(t *testing.T) {
	cluster := fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
	got := facadetest.NewChange(newWebsite(), facadetest.Client(cluster)).Call(t.Context(), publish)
	if got.Err != nil || got.Object.Status.Page != "home-page" {
		t.Errorf("got error %v, page %q", got.Err, got.Object.Status.Page)
	}
	requirePage(t, cluster, "<h1>Cats &amp; dogs</h1>\n")
}

// TestOperator runs the whole operator against an API server in memory, in virtual time.
func TestOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, server := newCluster(t)
		r := facadetest.Start(t, newOperator(), facadetest.Against(memapi.Config(server)))
		r.Ready()
		home := newWebsite()
		for _, step := range []func(context.Context) error{
			func(ctx context.Context) error { return cluster.Create(ctx, home) },
			func(ctx context.Context) error { return cluster.Get(ctx, client.ObjectKeyFromObject(home), home) },
			func(ctx context.Context) error {
				home.Spec.Title = "Only cats"
				return cluster.Update(ctx, home)
			},
		} {
			if err := step(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.Settle(time.Minute, time.Hour)
		}
		requirePage(t, cluster, "<h1>Only cats</h1>\n")
	})
}

// newCluster returns an API server in memory that has the CRD, and a client of it.
func newCluster(t testing.TB) (client.Client, *memapi.Server) {
	t.Helper()
	definitions, err := memapi.Definitions("crd.yaml")
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

func requirePage(t testing.TB, cluster client.Client, want string) {
	t.Helper()
	var page corev1.ConfigMap
	key := client.ObjectKey{Namespace: "default", Name: "home-page"}
	if err := cluster.Get(t.Context(), key, &page); err != nil {
		t.Fatal(err)
	}
	if got := page.Data["index.html"]; got != want {
		t.Errorf("got page %q, want %q", got, want)
	}
}
