package main

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// killableHosting is the client of one process: after a crash, its calls have no effect.
type killableHosting struct {
	life    *explorer.Life
	hosting hosting
}

var _ hosting = killableHosting{}

func (m killableHosting) Upload(ctx context.Context, name, text string) (err error) {
	m.life.Do("upload", func() { err = m.hosting.Upload(ctx, name, text) })
	return err
}

func (m killableHosting) FindServer(ctx context.Context, label string) (id string, err error) {
	m.life.Do("find", func() { id, err = m.hosting.FindServer(ctx, label) })
	return id, err
}

func (m killableHosting) RentServer(ctx context.Context, label string) (id string, err error) {
	m.life.Do("rent", func() { id, err = m.hosting.RentServer(ctx, label) })
	return id, err
}

func (m killableHosting) Bill(ctx context.Context, token, text string) (err error) {
	m.life.Do("bill", func() { err = m.hosting.Bill(ctx, token, text) })
	return err
}

func (m killableHosting) Remove(ctx context.Context, name string) (err error) {
	m.life.Do("remove", func() { err = m.hosting.Remove(ctx, name) })
	return err
}

// TestCrashes stops the operator at each request and call, starts the next one, and compares the objects and the
// content of the service with those of a run without a crash.
func TestCrashes(t *testing.T) {
	scheme := runtime.NewScheme()
	types := runtime.SchemeBuilder{clientgoscheme.AddToScheme, v1.AddToScheme}
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	explorer.Explore(t, func() explorer.Scenario {
		service := newMemoryHosting()
		service.busy = false
		return explorer.Scenario{
			Scheme:   scheme,
			Server:   newServer,
			Outside:  func() any { return service.content() },
			Operator: func(life *explorer.Life) *kopf.Operator { return newOperator(killableHosting{life, service}) },
			Play: func(p *explorer.Play) {
				home := &v1.Website{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"},
					Spec:       v1.WebsiteSpec{Title: "Hello"},
				}
				p.Create(home)
				p.Settle()
				p.Edit(home, func() { home.Spec.Title = "Hello again" })
				p.Settle()
				p.Delete(home)
			},
		}
	}, explorer.OutsideStays(), explorer.CutsOnly())
}

func newServer(t testing.TB) *memapi.Server {
	t.Helper()
	definitions, err := memapi.Definitions("../../getting-started/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := memapi.New()
	if err := server.Define(definitions...); err != nil {
		t.Fatal(err)
	}
	return server
}
