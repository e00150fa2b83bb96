package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// All calls with their times, and the final objects, are compared with a file. After an intended change, go test
// ./examples/09-testing -facadetest.update rewrites the file, and git diff shows how the behaviour of the operator has
// changed.
func TestTwoNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, sent := town(t), &recordingPost{}
		people := inhabitant(t, server)
		sent.strike(errors.New("the post is on strike"))
		r := facadetest.Start(t, newOperator(sent), facadetest.Against(memapi.Config(server)))
		r.Ready()
		for _, name := range []string{"ann", "bob"} {
			one := example(map[string]any{"field": "High Street"})
			one.SetName(name)
			if err := people.Create(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * time.Minute)
		}
		sent.strike(nil)
		time.Sleep(48 * time.Hour)

		var examples, letters unstructured.UnstructuredList
		examples.SetGroupVersionKind(example(nil).GroupVersionKind())
		letters.SetAPIVersion("v1")
		letters.SetKind("ConfigMap")
		for _, list := range []*unstructured.UnstructuredList{&examples, &letters} {
			if err := people.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		facadetest.Golden(t, "testdata/neighbours.golden", r.Calls(), &examples, &letters, sent.letters)
	})
}
