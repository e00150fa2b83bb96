package memapi_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// A kind from the files of a project, with default values and the error messages of the real server.
func ExampleServer_Define() {
	definitions, err := memapi.Definitions(filepath.Join("testdata", "crds.yaml"))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := memapi.New()
	if err := server.Define(definitions...); err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(memapi.Config(server), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "memapi.example.org/v1", "kind": "Gizmo",
		"metadata": map[string]any{"namespace": "default", "name": "a"},
		"spec":     map[string]any{"size": "huge"},
	}}
	reason, values, _ := strings.Cut(c.Create(context.Background(), object).Error(), ": supported")
	fmt.Println(reason)
	fmt.Println("supported" + values)
	_ = unstructured.SetNestedField(object.Object, "large", "spec", "size")
	fmt.Println(c.Create(context.Background(), object))
	fmt.Println(object.Object["spec"])
	// Output:
	// Gizmo.memapi.example.org "a" is invalid: spec.size: Unsupported value: "huge"
	// supported values: "small", "medium", "large"
	// <nil>
	// map[always:here deep:map[level:1] replicas:3 size:large]
}
