package memapi_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

func TestAdmission(t *testing.T) {
	server, _, c, object := stocked(t)
	server.Admit(memapi.Admission{
		Mutate: func(of memapi.Resource, object map[string]any) {
			if of.Kind != "Widget" || object["kind"] != "Widget" {
				t.Errorf("the object is %v of %v", object["kind"], of.Kind)
			}
			object["spec"].(map[string]any)["seen"] = true
		},
		Validate: func(_ memapi.Resource, object map[string]any) error {
			if spec := object["spec"].(map[string]any); spec["owner"] == "eve" && spec["seen"] == true {
				return memapi.Refusal(422, "spec.owner")
			}
			return nil
		},
	})
	if err := c.Patch(t.Context(), object, give("eve")); !apierrors.IsInvalid(err) || owner(server) != "ann" {
		t.Errorf("what the schema refuses is not stored: %v, owner %s", err, owner(server))
	}
	err := c.Patch(t.Context(), object, give("bob"))
	if spec := server.Object(widget, "ns", "a")["spec"].(map[string]any); err != nil || spec["seen"] != true {
		t.Errorf("what webhooks change is stored: %v, %v", err, spec)
	}
}

func TestEditsByOthers(t *testing.T) {
	nothing := func(map[string]any) {}
	specified := func(object map[string]any) { object["spec"] = map[string]any{"owner": "bob"} }
	hold := func(object map[string]any) {
		object["metadata"].(map[string]any)["finalizers"] = []any{"example.org/hold"}
	}
	release := func(object map[string]any) { delete(object["metadata"].(map[string]any), "finalizers") }
	server, _, _, object := stocked(t)
	of := func(name string) any {
		metadata, _ := server.Object(widget, "ns", "a")["metadata"].(map[string]any)
		return metadata[name]
	}
	first := of("resourceVersion")
	if !server.Edit(widget, "ns", "a", nothing) || of("resourceVersion") != first {
		t.Error("an edit without a difference has no version")
	}
	if !server.Edit(widget, "ns", "a", hold) || of("resourceVersion") == first || of("generation") != int64(1) {
		t.Error("an edit of the metadata has a version, but no generation")
	}
	if !server.Edit(widget, "ns", "a", specified) || of("generation") != int64(2) {
		t.Error("an edit of the spec has a generation")
	}
	if !server.Delete(widget, "ns", "a") || of("deletionTimestamp") == nil {
		t.Error("a finalizer holds the object")
	}
	if !server.Edit(widget, "ns", "a", release) || server.Object(widget, "ns", "a") != nil {
		t.Error("the object goes with its last finalizer")
	}
	if server.Edit(widget, "ns", "a", specified) || server.Delete(widget, "ns", "a") ||
		server.Discard(widget, "ns", "a") {
		t.Error("there is nothing to change any more")
	}
	object.SetResourceVersion("500")
	server.Restore(widget, object.Object)
	if of("resourceVersion") != "500" {
		t.Errorf("a restored object keeps its version, got %v", of("resourceVersion"))
	}
	object.SetUID("another")
	server.Put(widget, object.Object)
	if of("uid") != "another" || of("resourceVersion") == "500" {
		t.Errorf("another object of the name takes its place: %v, %v", of("uid"), of("resourceVersion"))
	}
	if !server.Discard(widget, "ns", "a") || server.Object(widget, "ns", "a") != nil {
		t.Error("nothing holds what is discarded")
	}
}
