package memapi_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// The answer to the second write is lost, although the write took effect.
func Example() {
	widgets := memapi.Resource{
		Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
		StatusSubresource: true,
	}
	server := memapi.New()
	server.Install(widgets)
	server.Put(widgets, map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": "a", "uid": "1"}, "spec": map[string]any{"size": 1},
	})

	connection := server.Connect()
	writes := 0
	connection.After = func(_ context.Context, r memapi.Request) error {
		if writes++; writes == 2 {
			return errors.New("the connection was reset")
		}
		return nil
	}
	c, err := memapi.NewClient(connection, widgets)
	if err != nil {
		fmt.Println(err)
		return
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.org/v1")
	object.SetKind("Widget")
	object.SetNamespace("default")
	object.SetName("a")
	for size := 2; size < 4; size++ {
		patch := fmt.Sprintf(`{"spec":{"size":%d}}`, size)
		err := c.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
		fmt.Println(errors.Unwrap(err))
	}
	fmt.Println(server.Object(widgets, "default", "a")["spec"])
	for _, r := range connection.DrainRequests() {
		fmt.Printf("%s %s/%s %s: %d\n", r.Verb, r.Namespace, r.Name, r.Body, r.Code)
	}
	// Output:
	// <nil>
	// the connection was reset
	// map[size:3]
	// patch default/a {"spec":{"size":2}}: 200
	// patch default/a {"spec":{"size":3}}: 0
}
