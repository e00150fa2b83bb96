package memapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// applying is the form of a patch that is a server-side apply.
const applying = "application/apply-patch+yaml"

// apply merges what a field manager declares into the object, or makes one of it. There are no schemas: lists belong to
// one manager each, as a whole.
func (s *Server) apply(t target, query url.Values, data []byte) (map[string]any, error) {
	var declared map[string]any
	if err := json.Unmarshal(data, &declared); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if query.Get("fieldManager") == "" {
		return nil, apierrors.NewBadRequest("PatchOptions.meta.k8s.io is invalid: fieldManager: Required value")
	}
	before, exists := s.objects[t.groupResource()][t.key()]
	if uid := metadataOf(declared)["uid"]; uid != nil && !exists {
		return nil, apierrors.NewConflict(t.groupResource(), t.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %v, and no existing object was found", uid,
		))
	}
	live := t.shown(map[string]any{"metadata": map[string]any{"name": t.name, "namespace": t.namespace}})
	if exists {
		live = t.shown(before)
	}
	fields, err := t.managers()
	if err != nil {
		return nil, err
	}
	merged, err := fields.Apply(
		&unstructured.Unstructured{Object: cloned(live)}, &unstructured.Unstructured{Object: declared},
		query.Get("fieldManager"), query.Get("force") == "true",
	)
	if err != nil {
		return nil, err
	}
	object := contentOf(merged)
	t.managed = metadataOf(object)["managedFields"]
	document, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if !exists {
		return s.create(t, document)
	}
	if object, err = t.parse(document); err != nil {
		return nil, err
	}
	return s.replace(t, before, object)
}

// managers keeps the books on who has set which field.
func (t target) managers() (*managedfields.FieldManager, error) {
	return managedfields.NewDefaultCRDFieldManager(
		managedfields.NewDeducedTypeConverter(), asIs{}, asIs{}, asIs{}, t.groupVersion().WithKind(t.Kind),
		t.groupVersion(), t.subresource, nil,
	)
}

// manage notes who has changed the object, if anybody has ever applied it: nobody asks that of others.
func (t target) manage(before, object map[string]any) error {
	was := metadataOf(before)["managedFields"]
	delete(metadataOf(object), "managedFields")
	switch {
	case t.managed != nil:
		metadataOf(object)["managedFields"] = t.managed
		return nil
	case was == nil:
		return nil
	}
	fields, err := t.managers()
	if err != nil {
		return err
	}
	changed, err := fields.Update(
		&unstructured.Unstructured{Object: t.shown(cloned(before))},
		&unstructured.Unstructured{Object: t.shown(cloned(object))}, t.manager,
	)
	if err != nil {
		return err
	}
	metadataOf(object)["managedFields"] = metadataOf(contentOf(changed))["managedFields"]
	return nil
}

func contentOf(object runtime.Object) map[string]any {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return map[string]any{}
	}
	return content.Object
}

// managerOf is who sends a request that says nothing else: the program.
func managerOf(r *http.Request) string {
	if given := r.URL.Query().Get("fieldManager"); given != "" {
		return given
	}
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	return program
}

// asIs converts between the only version of a kind and itself.
type asIs struct{}

func (asIs) Convert(_, _, _ any) error { return errors.New("there is one version only") }

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asIs) Default(runtime.Object) {}

func (asIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}
