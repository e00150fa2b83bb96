package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/api/v1"
	"github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/internal/controller"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestHandlers runs the handlers without the manager and the reconciler, against an API server in memory.
func TestHandlers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the archive
	synctest.Test(t, func(t *testing.T) {
		cluster, server := newCluster(t)
		op := kopf.New("guestbooks.example.org", kopf.Settings{
			AddToScheme: runtime.SchemeBuilder{webappv1.AddToScheme},
		})
		controller.RegisterHandlers(op)
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()

		book := &webappv1.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wedding"},
			Spec:       webappv1.GuestbookSpec{Title: "Our wedding"},
		}
		if err := cluster.Create(t.Context(), book); err != nil {
			t.Fatal(err)
		}
		r.Settle(time.Minute, time.Hour)
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(book), book); err != nil {
			t.Fatal(err)
		}
		if want := "Please sign Our wedding"; book.Status.Invitation != want {
			t.Errorf("want the invitation %q, got %q", want, book.Status.Invitation)
		}
		if err := cluster.Delete(t.Context(), book); err != nil {
			t.Fatal(err)
		}
		r.Settle(time.Minute, time.Hour)
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(book), book); !apierrors.IsNotFound(err) {
			t.Errorf("the object must be released after its delete handler, got %v", err)
		}
	})
}

// newCluster returns an API server in memory that has the CRD, and a client of it.
func newCluster(t testing.TB) (client.Client, *memapi.Server) {
	t.Helper()
	definitions, err := memapi.Definitions("../../config/crd/bases/webapp.example.org_guestbooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := memapi.New()
	if err := server.Define(definitions...); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := webappv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(memapi.Config(server), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cluster, server
}
