package main

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// town returns an API server in memory that serves the kind and collects garbage as a cluster does.
func town(t testing.TB) *memapi.Server {
	t.Helper()
	server := memapi.New()
	definitions, err := memapi.Definitions("../../config/crd/kopfexamples.yaml")
	if err == nil {
		err = server.Define(definitions...)
	}
	if err != nil {
		t.Fatal(err)
	}
	server.CollectGarbage(time.Second)
	return server
}

// inhabitant returns a client that is not the operator's.
func inhabitant(t testing.TB, server *memapi.Server) client.Client {
	t.Helper()
	c, err := client.New(memapi.Config(server), client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The whole operator runs in virtual time: hours and days pass as soon as it is idle. The post is on strike for two and
// a half hours.
func TestAStrike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, sent := town(t), &recordingPost{}
		people := inhabitant(t, server)
		sent.strike(errors.New("the post is on strike"))
		r := facadetest.Start(t, newOperator(sent), facadetest.Against(memapi.Config(server)))
		r.Ready()

		ann := example(map[string]any{"field": "High Street"})
		if err := people.Create(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * time.Minute)
		sent.strike(nil)
		r.Settle(2*time.Hour, 12*time.Hour) // retries are an hour apart, so after two idle hours there are no more
		var calls []string
		for _, call := range r.Calls() {
			calls = append(calls, call.String())
		}
		const letter = "create KopfExample default/ann: letter"
		if want := []string{
			letter + " #1: retry: the post is on strike", letter + " #2: retry: the post is on strike",
			letter + " #3: retry: the post is on strike", letter + " #4: success",
		}; !slices.Equal(calls, want) {
			t.Errorf("got calls %q", calls)
		}

		time.Sleep(3 * 24 * time.Hour)
		if err := people.Get(t.Context(), client.ObjectKeyFromObject(ann), ann); err != nil {
			t.Fatal(err)
		}
		if reminders := kopf.GetFieldOr(ann, "status.reminders", 0); reminders != 3 {
			t.Errorf("got %d reminders in three days", reminders)
		}
	})
}

// After the object is deleted, nothing is left of it, and no handler is called.
func TestTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, sent := town(t), &recordingPost{}
		people := inhabitant(t, server)
		r := facadetest.Start(t, newOperator(sent), facadetest.Against(memapi.Config(server)))
		r.Ready()
		ann := example(map[string]any{"field": "High Street"})
		for _, do := range []func() error{
			func() error { return people.Create(t.Context(), ann) },
			func() error { return people.Delete(t.Context(), ann) },
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			r.Settle(time.Hour, 12*time.Hour)
		}
		r.Quiet(24 * time.Hour)
		if err := people.Get(t.Context(), client.ObjectKeyFromObject(ann), ann); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		} else if err == nil {
			t.Errorf("it is still there: %v", ann)
		}
		if want := "High Street: Farewell, ann"; len(sent.letters) != 2 || sent.letters[1] != want {
			t.Errorf("got letters %q", sent.letters)
		}
	})
}
