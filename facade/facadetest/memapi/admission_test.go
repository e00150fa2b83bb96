package memapi_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

func TestAdmission(t *testing.T) {
	server, _, c, object := newWidgetServer(t)
	server.SetAdmission(memapi.Admission{
		Mutate: func(of memapi.Resource, object map[string]any) {
			if of.Kind != "Widget" || object["kind"] != "Widget" {
				t.Errorf("the object is %v of %v", object["kind"], of.Kind)
			}
			object["spec"].(map[string]any)["seen"] = true
		},
		Validate: func(_ memapi.Resource, object map[string]any) error {
			if spec := object["spec"].(map[string]any); spec["owner"] == "eve" && spec["seen"] == true {
				return memapi.NewRefusal(422, "spec.owner")
			}
			return nil
		},
	})
	if err := c.Patch(t.Context(), object, give("eve")); !apierrors.IsInvalid(err) || owner(server) != "ann" {
		t.Errorf("an object that Validate refuses must not be stored: %v, owner %s", err, owner(server))
	}
	err := c.Patch(t.Context(), object, give("bob"))
	if spec := server.Object(widget, "ns", "a")["spec"].(map[string]any); err != nil || spec["seen"] != true {
		t.Errorf("the change of Mutate must be stored: %v, %v", err, spec)
	}
}

func TestEditsByOthers(t *testing.T) {
	nothing := func(map[string]any) {}
	specified := func(object map[string]any) { object["spec"] = map[string]any{"owner": "bob"} }
	hold := func(object map[string]any) {
		object["metadata"].(map[string]any)["finalizers"] = []any{"example.org/hold"}
	}
	release := func(object map[string]any) { delete(object["metadata"].(map[string]any), "finalizers") }
	server, _, _, object := newWidgetServer(t)
	of := func(name string) any {
		metadata, _ := server.Object(widget, "ns", "a")["metadata"].(map[string]any)
		return metadata[name]
	}
	first := of("resourceVersion")
	if !server.Edit(widget, "ns", "a", nothing) || of("resourceVersion") != first {
		t.Error("an edit without a difference must keep the version")
	}
	if !server.Edit(widget, "ns", "a", hold) || of("resourceVersion") == first || of("generation") != int64(1) {
		t.Error("an edit of the metadata must change the version and keep the generation")
	}
	if !server.Edit(widget, "ns", "a", specified) || of("generation") != int64(2) {
		t.Error("an edit of the spec must increase the generation")
	}
	if !server.Delete(widget, "ns", "a") || of("deletionTimestamp") == nil {
		t.Error("a finalizer must hold a deleted object")
	}
	if !server.Edit(widget, "ns", "a", release) || server.Object(widget, "ns", "a") != nil {
		t.Error("a deleted object must disappear with its last finalizer")
	}
	if server.Edit(widget, "ns", "a", specified) || server.Delete(widget, "ns", "a") ||
		server.Discard(widget, "ns", "a") {
		t.Error("Edit, Delete and Discard of an absent object must return false")
	}
	object.SetResourceVersion("500")
	if err := server.Load(object.Object); err != nil || of("resourceVersion") != "500" {
		t.Errorf("a loaded object must keep its version, got %v: %v", of("resourceVersion"), err)
	}
	object.SetUID("another")
	server.Put(widget, object.Object)
	if of("uid") != "another" || of("resourceVersion") == "500" {
		t.Errorf("Put must replace an object of the same name: uid %v, version %v", of("uid"), of("resourceVersion"))
	}
	if !server.Discard(widget, "ns", "a") || server.Object(widget, "ns", "a") != nil {
		t.Error("Discard must remove the object at once")
	}
}
