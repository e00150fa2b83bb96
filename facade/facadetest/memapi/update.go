package memapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// updateObject replaces an object by the body of a request.
func (s *Server) updateObject(t target, data []byte) (map[string]any, error) {
	before, ok := s.objects[t.groupResource()][t.objectKey()]
	// A body that cannot be decoded is reported even if the object does not exist.
	object, err := t.parseObject(data)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, notFound(t)
	}
	metadata := metadataOf(object)
	if name, _ := metadata["name"].(string); name != t.name {
		return nil, t.otherName(name)
	}
	// The namespace is optional in the body.
	if t.namespace != "" && metadata["namespace"] == nil {
		metadata["namespace"] = t.namespace
	}
	if uid := metadata["uid"]; uid != nil && uid != metadataOf(before)["uid"] {
		return nil, apierrors.NewConflict(t.qualifiedName(), t.name, errors.New("precondition failed: UID"))
	}
	// Custom resources, and some built-in kinds, cannot be updated without a resource version.
	if version, _ := metadata["resourceVersion"].(string); version == "" && !t.allowsBlindUpdate() {
		return nil, t.invalidError(field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	return s.replaceObject(t, before, object)
}

// otherName returns the error for a body whose name differs from the URL.
func (t target) otherName(name string) error {
	return apierrors.NewBadRequest(
		fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, t.name),
	)
}

// patchObject changes an object with the body of a request. A server-side apply also creates it.
func (s *Server) patchObject(r *http.Request, t target, data []byte) (object map[string]any, code int, err error) {
	form := contentTypeOf(r)
	// The accepted formats depend on the kind.
	if forms := t.patchTypes(); !slices.Contains(forms, form) {
		return nil, 0, unsupportedContentType(forms)
	}
	before, ok := s.objects[t.groupResource()][t.objectKey()]
	switch {
	case form == applyPatchType && ok:
		object, err = s.applyDeclaration(t, r.URL.Query(), data)
		return object, http.StatusOK, err
	case form == applyPatchType:
		object, err = s.applyDeclaration(t, r.URL.Query(), data)
		return object, http.StatusCreated, err
	case !ok:
		return nil, 0, notFound(t)
	}
	// Patches apply to the object in the version of the request.
	document, err := json.Marshal(t.servedObject(before))
	if err != nil {
		return nil, 0, err
	}
	if t.patchResult, err = t.applyPatch(form, document, data); err != nil {
		return nil, 0, err
	}
	if object, err = t.parseObject(t.patchResult); err != nil {
		return nil, 0, err
	}
	object, err = s.replaceObject(t, before, object)
	return object, http.StatusOK, err
}

// applyPatch applies a patch of the content type to the document.
func (t target) applyPatch(form string, document, data []byte) ([]byte, error) {
	switch types.PatchType(form) {
	case types.MergePatchType:
		merged, err := jsonpatch.MergePatch(document, data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return merged, nil
	case types.StrategicMergePatchType:
		return t.applyStrategicPatch(document, data)
	default:
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if document, err = patch.Apply(document); err != nil {
			return nil, apierrors.NewGenericServerResponse(
				http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false,
			)
		}
		return document, nil
	}
}

// patchTypes returns the content types of patches that the kind supports. Only kinds with a Go type support strategic
// merge patches.
func (t target) patchTypes() []string {
	forms := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if _, err := t.goType(); err == nil {
		forms = append(forms, string(types.StrategicMergePatchType))
	}
	return append(forms, applyPatchType)
}

// unsupportedContentType returns the error for a patch with an unsupported content type.
func unsupportedContentType(known []string) error {
	return newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(known, ", "))
}

// goType returns an empty object of a built-in kind.
func (t target) goType() (runtime.Object, error) {
	return builtInScheme().New(t.groupVersion().WithKind(t.Kind))
}

// applyStrategicPatch applies a strategic merge patch with the merge keys of the kind's Go type.
func (t target) applyStrategicPatch(document, data []byte) ([]byte, error) {
	form, err := t.goType()
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(document, data, form)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return merged, nil
}

// replaceObject stores a new state of an object after an update, a patch or an apply, with all checks of the real
// server.
func (s *Server) replaceObject(t target, before, object map[string]any) (map[string]any, error) {
	metadata, was := metadataOf(object), metadataOf(before)
	// The former object in the version of the request, for comparison and validation.
	former := t.readStored(before)
	if t.notes.failure != nil {
		return nil, t.notes.failure
	}
	// The optimistic lock: a stale version is a conflict.
	if version, _ := metadata["resourceVersion"].(string); version != "" && version != was["resourceVersion"] {
		return nil, apierrors.NewConflict(t.qualifiedName(), t.name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	object = t.permittedChanges(former, object)
	metadata = metadataOf(object)
	if s.managesNamespace(t) {
		object["spec"] = cloneObject(former)["spec"] // only the server removes the finalizer of a namespace's content
	}
	// An update without a uid applies to any object with the name.
	if metadata["uid"] == nil && was["uid"] != nil {
		metadata["uid"] = was["uid"]
	}
	// Clients cannot change these fields; the stored values remain.
	keepFields(metadata, was, "resourceVersion", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "generation", "generateName")
	if t.subresource == "" {
		t.setDefinitionStatus(object) // its validation requires the storage version to be a stored one
	}
	if err := s.admitObject(t, object, former); err != nil {
		return nil, err
	}
	t.pruneStatus(object)
	t.setDefinitionStatus(object)
	// It is computed before the conversion to the stored version, where both objects have the same form.
	specified := !t.Plain && t.changesGeneration(former, object)
	if err := t.convertToStored(object); err != nil {
		return nil, err
	}
	metadata = metadataOf(object)
	// A write without a change does not create a new version, so that watches do not see an event.
	if equality.Semantic.DeepEqual(withoutTimes(before), withoutTimes(object)) {
		return t.servedObject(before), nil
	}
	if specified {
		metadata["generation"] = generationOf(before) + 1
	}
	if s.isReleased(t, object) { // the last finalizer was removed
		s.removeObject(t, before)
		return t.servedObject(object), nil
	}
	s.setResourceVersion(t, metadata)
	s.storeObject(t, before, object)
	return t.servedObject(object), nil
}

// withoutTimes returns the object without the times in its managedFields. The real server does not store an update that
// changes only these.
func withoutTimes(object map[string]any) map[string]any {
	if metadataOf(object)["managedFields"] == nil {
		return object
	}
	copied := cloneObject(object)
	// The entries are copies, so the stored object keeps its times.
	managed, _ := metadataOf(copied)["managedFields"].([]any)
	for _, entry := range managed {
		if fields, ok := entry.(map[string]any); ok {
			delete(fields, "time")
		}
	}
	return copied
}

// isReleased reports whether an object is being deleted and no finalizer holds it any more.
func (s *Server) isReleased(t target, object map[string]any) bool {
	metadata := metadataOf(object)
	if held, _, _ := unstructured.NestedSlice(object, "spec", "finalizers"); len(held) > 0 && s.managesNamespace(t) {
		return false
	}
	finalizers, _ := metadata["finalizers"].([]any)
	grace, _ := metadata["deletionGracePeriodSeconds"].(int64)
	return metadata["deletionTimestamp"] != nil && len(finalizers) == 0 && grace == 0
}

// permittedChanges returns the object with only those changes that the path of the request permits: to the status
// alone, or to everything but the status.
func (t target) permittedChanges(before, object map[string]any) map[string]any {
	if !t.StatusSubresource {
		return object
	}
	status, from := object, cloneObject(before)
	if t.subresource == "" {
		status, from = before, object
	}
	delete(from, "status")
	if status["status"] != nil {
		from["status"] = status["status"]
	}
	return from
}

// dropEmptyMetadata removes empty metadata fields that the Go types of the real server omit when empty.
func dropEmptyMetadata(metadata map[string]any) {
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		isEmpty := metadata[name] == nil
		switch value := metadata[name].(type) {
		case map[string]any:
			isEmpty = len(value) == 0
		case []any:
			isEmpty = len(value) == 0
		}
		if isEmpty {
			delete(metadata, name)
		}
	}
}

// changesGeneration reports whether a change increases the generation: any change outside of the metadata and of a
// status with its own subresource. For a few built-in kinds, one metadata field counts, too.
func (t target) changesGeneration(before, object map[string]any) bool {
	a, b := cloneObject(before), cloneObject(object)
	counted := ""
	// A request to a subresource never counts changes of metadata.
	if n, ok := t.nativeKind(); ok && t.subresource == "" {
		counted = n.generationField
	}
	for _, one := range []map[string]any{a, b} {
		// Nothing else of the metadata is compared.
		one["metadata"] = metadataOf(one)[counted]
		if t.StatusSubresource {
			delete(one, "status")
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}

// generationOf returns the generation of an object, or 0 if it does not have one.
func generationOf(object map[string]any) int64 {
	value, _ := metadataOf(object)["generation"].(int64)
	return value
}
