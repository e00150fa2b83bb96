package memapi

import (
	"errors"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) update(t target, data []byte) (map[string]any, error) {
	before, ok := s.objects[t.groupResource()][t.key()]
	object, err := t.parse(data)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, notFound(t)
	}
	metadata := metadataOf(object)
	if name, _ := metadata["name"].(string); name != t.name {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, t.name),
		)
	}
	if t.namespace != "" && metadata["namespace"] == nil {
		metadata["namespace"] = t.namespace
	}
	if uid := metadata["uid"]; uid != nil && uid != metadataOf(before)["uid"] {
		return nil, apierrors.NewConflict(t.groupResource(), t.name, errors.New("precondition failed: UID"))
	}
	if version, _ := metadata["resourceVersion"].(string); version == "" && !t.Plain {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: t.Group, Kind: t.Kind}, t.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	return s.replace(t, before, object)
}

func (s *Server) patch(t target, form string, data []byte) (map[string]any, error) {
	before, ok := s.objects[t.groupResource()][t.key()]
	if !ok {
		return nil, notFound(t)
	}
	document, err := json.Marshal(t.shown(before))
	if err != nil {
		return nil, err
	}
	switch form {
	case "application/merge-patch+json":
		document, err = jsonpatch.MergePatch(document, data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case "application/json-patch+json":
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if document, err = patch.Apply(document); err != nil {
			return nil, apierrors.NewGenericServerResponse(
				http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false,
			)
		}
	default:
		return nil, &apierrors.StatusError{ErrStatus: apierrors.NewGenericServerResponse(
			http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "",
			"unsupported patch: "+form, 0, false).Status()}
	}
	object, err := t.parse(document)
	if err != nil {
		return nil, err
	}
	return s.replace(t, before, object)
}

// replace puts an object in the place of another version of it, as far as it may.
func (s *Server) replace(t target, before, object map[string]any) (map[string]any, error) {
	metadata, was := metadataOf(object), metadataOf(before)
	if version, _ := metadata["resourceVersion"].(string); version != "" && version != was["resourceVersion"] {
		return nil, apierrors.NewConflict(t.groupResource(), t.name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	object = t.permitted(before, object)
	metadata = metadataOf(object)
	if metadata["uid"] == nil && was["uid"] != nil {
		metadata["uid"] = was["uid"]
	}
	for _, own := range []string{
		"resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
		"generateName",
	} {
		delete(metadata, own)
		if was[own] != nil {
			metadata[own] = was[own]
		}
	}
	s.mutate(t, object)
	tidy(metadata)
	if err := t.manage(before, object); err != nil {
		return nil, err
	}
	if err := s.validate(t, object, before); err != nil {
		return nil, err
	}
	t.prune(object)
	if equality.Semantic.DeepEqual(before, object) {
		return t.shown(before), nil
	}
	if !t.Plain && t.specified(before, object) {
		metadata["generation"] = generation(before) + 1
	}
	if released(metadata) {
		s.discard(t, before)
		return t.shown(object), nil
	}
	metadata["resourceVersion"] = s.next()
	s.keep(t, before, object)
	return t.shown(object), nil
}

// released tells whether nothing holds an object that is being deleted any more.
func released(metadata map[string]any) bool {
	finalizers, _ := metadata["finalizers"].([]any)
	grace, _ := metadata["deletionGracePeriodSeconds"].(int64)
	return metadata["deletionTimestamp"] != nil && len(finalizers) == 0 && grace == 0
}

// permitted is what the path lets through: the status alone, or all but the status.
func (t target) permitted(before, object map[string]any) map[string]any {
	if !t.StatusSubresource {
		return object
	}
	status, from := object, cloned(before)
	if t.subresource == "" {
		status, from = before, object
	}
	delete(from, "status")
	if status["status"] != nil {
		from["status"] = status["status"]
	}
	return from
}

// tidy removes what the server's own types leave out if it is empty.
func tidy(metadata map[string]any) {
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		switch value := metadata[name].(type) {
		case map[string]any:
			if len(value) == 0 {
				delete(metadata, name)
			}
		case []any:
			if len(value) == 0 {
				delete(metadata, name)
			}
		case nil:
			delete(metadata, name)
		}
	}
}

// specified tells whether anything but the metadata and a status of its own has changed.
func (t target) specified(before, object map[string]any) bool {
	a, b := cloned(before), cloned(object)
	for _, one := range []map[string]any{a, b} {
		delete(one, "metadata")
		if t.StatusSubresource {
			delete(one, "status")
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}

func generation(object map[string]any) int64 {
	value, _ := metadataOf(object)["generation"].(int64)
	return value
}
