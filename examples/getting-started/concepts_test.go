package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestStoredState shows what an operator stores on an object: during a change, after it, and during the deletion.
func TestStoredState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, server := newCluster(t)
		op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
		websites := kopf.For(op, &v1.Website{})
		websites.OnCreate("render", func(_ context.Context, c *Change) error {
			c.Patch(func(w *v1.Website) { w.Status.Page = w.Name + "-page" })
			return nil
		})
		websites.OnCreate("upload", func(_ context.Context, c *Change) error {
			if c.Retry == 0 {
				return kopf.Temporary(errors.New("the disk is full"), time.Hour)
			}
			return nil
		})
		websites.OnDelete("close", func(_ context.Context, c *Change) error {
			return kopf.Temporary(errors.New("visitors are online"), time.Hour)
		})
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()

		home := newWebsite()
		if err := cluster.Create(t.Context(), home); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		requireState(t, cluster, "testdata/during-creation.golden")
		time.Sleep(2 * time.Hour)
		requireState(t, cluster, "testdata/after-creation.golden")
		if err := cluster.Delete(t.Context(), home); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		requireState(t, cluster, "testdata/during-deletion.golden")

		// kubectl patch website home --type merge -p '{"metadata":{"finalizers":null}}'
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := cluster.Patch(t.Context(), home, patch); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(home), home); !apierrors.IsNotFound(err) {
			t.Errorf("an object without finalizers must disappear, got %v", err)
		}
	})
}

func requireState(t testing.TB, cluster client.Client, file string) {
	t.Helper()
	home := newWebsite()
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(home), home); err != nil {
		t.Fatal(err)
	}
	facadetest.Golden(t, file, home)
}
