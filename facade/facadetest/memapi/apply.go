package memapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// applyPatchType is the content type of a server-side apply.
const applyPatchType = "application/apply-patch+yaml"

// applyDeclaration merges the fields that a field manager declares into the object, or creates the object. Lists and
// maps are merged as the schema says, and for built-in kinds as client-go's types say. For a kind without a schema, a
// list is one atomic value.
func (s *Server) applyDeclaration(t target, query url.Values, data []byte) (map[string]any, error) {
	declared, err := decodeYAML(data)
	if err != nil {
		return nil, err
	}
	if name, _ := metadataOf(declared)["name"].(string); name != "" && name != t.name {
		return nil, t.otherName(name)
	}
	before, exists := s.objects[t.groupResource()][t.objectKey()]
	// A uid in the declaration means that the object must exist. The real server returns a conflict here, not a "not
	// found".
	if uid := metadataOf(declared)["uid"]; uid != nil && !exists {
		return nil, apierrors.NewConflict(t.qualifiedName(), t.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %v, and no existing object was found", uid,
		))
	}
	live := t.emptyObject()
	if exists {
		live = t.servedObject(before)
		// Objects get managed fields with their first apply; the ownership before it is reconstructed.
		if metadataOf(live)["managedFields"] == nil {
			if metadataOf(live)["managedFields"], err = s.reconstructManagedFields(t, before); err != nil {
				return nil, err
			}
		}
	}
	books, err := s.fieldManager(t)
	if err != nil {
		return nil, err
	}
	// Conflicts with other managers are reported here, unless the request is forced.
	merged, err := books.Apply(
		&unstructured.Unstructured{Object: t.withoutUntypedStatus(live)}, &unstructured.Unstructured{Object: declared},
		query.Get("fieldManager"), query.Get("force") == "true",
	)
	if err != nil {
		return nil, err
	}
	object := contentOf(merged)
	// The merge has computed the ownership of all fields already; the write below must not compute it a second time.
	t.managedFields = metadataOf(object)["managedFields"]
	document, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if !exists {
		// The same checks apply as for a creation by POST. If another client creates the object during a review, it is
		// merged with that one instead.
		if object, err = s.createObject(t, document); apierrors.IsAlreadyExists(err) {
			err = errChangedInReview
		}
		return object, err
	}
	// Parsing drops unknown fields and sets defaults, as for an update.
	if object, err = t.parseObject(document); err != nil {
		return nil, err
	}
	return s.replaceObject(t, before, object)
}

// emptyObject returns an object with its name alone, so that the merge computes the ownership of all other fields.
func (t target) emptyObject() map[string]any {
	metadata := map[string]any{"name": t.name}
	if t.namespace != "" {
		metadata["namespace"] = t.namespace
	}
	return t.withKind(map[string]any{"metadata": metadata})
}

// decodeYAML decodes the body of an apply. JSON is valid YAML, so it accepts both.
func decodeYAML(data []byte) (map[string]any, error) {
	var declared map[string]any
	document, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = json.Unmarshal(document, &declared)
	}
	if err != nil || declared == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	return declared, nil
}

// managerOf returns the field manager of a request: the parameter fieldManager, or the program's name from the
// User-Agent header, as in the real server.
func managerOf(r *http.Request) string {
	if given := r.URL.Query().Get("fieldManager"); given != "" {
		return given
	}
	// Only the part before the version counts, such as "kubectl" of "kubectl/v1.36".
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	return program
}

// builtInTypes returns the types of the kinds of client-go. They are built at the first use, because that takes time.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(builtInScheme())
})

// fieldManager returns the field manager for the target, which computes the managedFields of its objects. Field
// managers are cached.
func (s *Server) fieldManager(t target) (*managedfields.FieldManager, error) {
	key := fieldManagerKey{t.groupVersion().WithKind(t.Kind), t.subresource, t.schema}
	if known := s.fieldManagers[key]; known != nil {
		return known, nil
	}
	construct, types := managedfields.NewDefaultCRDFieldManager, managedfields.NewDeducedTypeConverter()
	var err error
	switch {
	// A schema has merge keys for lists. Without any schema, the types are deduced from the object and lists are
	// atomic. This is so for CustomResourceDefinitions too: client-go does not have their types.
	case t.schema != nil:
		types, err = t.schema.Types()
	case builtInScheme().Recognizes(key.kind) && key.kind.Group != apiextensionsv1.GroupName:
		construct, types = managedfields.NewDefaultFieldManager, builtInTypes()
	}
	if err != nil {
		return nil, err
	}
	// Conversion is not needed: each field manager sees one version.
	made, err := construct(types, asIs{}, unstructuredscheme.NewUnstructuredDefaulter(),
		unstructuredscheme.NewUnstructuredCreator(), key.kind, t.groupVersion(), t.subresource, t.resetFields())
	if err != nil {
		return nil, err
	}
	s.fieldManagers[key] = made
	return made, nil
}

// resetFields returns the fields that the path of the request cannot change, so that a manager does not get to own
// them.
func (t target) resetFields() map[fieldpath.APIVersion]fieldpath.Filter {
	if !t.StatusSubresource {
		return nil
	}
	// The main path cannot change the status, and the status path cannot change the rest.
	passed := "status"
	if t.subresource == "status" {
		passed = "spec"
	}
	return fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(t.groupVersion().String()): fieldpath.NewSet(fieldpath.MakePathOrDie(passed)),
	})
}

// updateManagedFields updates the managedFields of an object that was applied at least once. Other objects do not have
// managedFields yet; [Server.reconstructManagedFields] reconstructs them at their first apply. A request may also
// change or remove the managedFields.
func (s *Server) updateManagedFields(t target, before, object map[string]any) error {
	metadata, was := metadataOf(object), metadataOf(before)["managedFields"]
	given := metadata["managedFields"]
	// From now on, the history is not used to reconstruct managedFields.
	if isReset(given) && t.subresource == "" {
		s.clearedManagedFields[metadata["uid"]] = true
	}
	delete(metadata, "managedFields")
	switch {
	// The apply has computed them already.
	case t.managedFields != nil:
		metadata["managedFields"] = t.managedFields
		return nil
	// The object was never applied, and the request does not set any managedFields.
	case was == nil && (given == nil || isReset(given)):
		return nil
	}
	// The field manager must see the managedFields of the request, if it has any: they replace the stored ones.
	stated := cloneObject(object)
	if given != nil {
		metadataOf(stated)["managedFields"] = given
	}
	managed, err := s.managedFieldsAfter(t, t.withKind(cloneObject(before)), stated)
	if err != nil {
		return err
	}
	if managed != nil {
		metadata["managedFields"] = managed
	}
	return nil
}

// isReset reports whether the value removes all managedFields: an empty list, or a list with one empty entry.
func isReset(managed any) bool {
	entries, ok := managed.([]any)
	if ok && len(entries) == 1 {
		only, isEntry := entries[0].(map[string]any)
		return isEntry && len(only) == 0
	}
	return ok && len(entries) == 0
}

// managedFieldsAfter returns the managedFields after a change by the target's manager.
func (s *Server) managedFieldsAfter(t target, before, object map[string]any) (any, error) {
	books, err := s.fieldManager(t)
	if err != nil {
		return nil, err
	}
	changed, err := books.Update(
		&unstructured.Unstructured{Object: t.withoutUntypedStatus(before)},
		&unstructured.Unstructured{Object: t.withoutUntypedStatus(t.withKind(cloneObject(object)))}, t.manager,
	)
	if err != nil {
		return nil, err
	}
	return metadataOf(contentOf(changed))["managedFields"], nil
}

// withoutUntypedStatus removes the status of built-in kinds whose Go type does not have one. Such a status is only
// stored by methods that skip validation.
func (t target) withoutUntypedStatus(object map[string]any) map[string]any {
	if t.Plain && !t.StatusSubresource {
		delete(object, "status")
	}
	return object
}

// author identifies the source of a change for managedFields: the manager, the subresource and the API version.
type author struct{ manager, subresource, version string }

// reconstructManagedFields reconstructs the managedFields of an object at its first apply, by replaying its changes
// from the history. It returns nil if the history no longer has its creation, or if a request has removed the
// managedFields.
func (s *Server) reconstructManagedFields(t target, object map[string]any) (any, error) {
	uid := metadataOf(object)["uid"]
	// The user has removed the managedFields on purpose.
	if s.clearedManagedFields[uid] {
		return nil, nil
	}
	// The creation of the object is the latest addition with its uid.
	first := -1
	for i := len(s.history) - 1; i >= 0 && first < 0; i-- {
		if e := s.history[i]; e.resource == t.groupResource() && e.before == nil && metadataOf(e.after)["uid"] == uid {
			first = i
		}
	}
	if first < 0 {
		// The creation was dropped from the history, so the ownership cannot be known.
		return nil, nil
	}
	var managed any
	for _, e := range s.history[first:] {
		// Other objects and former objects with the same name are skipped.
		if e.resource != t.groupResource() || e.after == nil || metadataOf(e.after)["uid"] != uid {
			continue
		}
		// Each change is replayed as its author made it.
		by := t
		by.manager, by.subresource, by.Version = e.author.manager, e.author.subresource, e.author.version
		then := by.withKind(map[string]any{"metadata": map[string]any{"name": t.name, "namespace": t.namespace}})
		// Each step needs the managedFields of the step before.
		if e.before != nil {
			then = by.servedObject(e.before)
			metadataOf(then)["managedFields"] = managed
		}
		var err error
		if managed, err = s.managedFieldsAfter(by, then, by.readStored(e.after)); err != nil {
			return nil, err
		}
	}
	return managed, nil
}

// contentOf returns the content of an unstructured object.
func contentOf(object runtime.Object) map[string]any {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return map[string]any{}
	}
	return content.Object
}

// asIs implements the conversion that a field manager requires, for kinds that it only sees in one version. Field
// managers do not call the other methods.
type asIs struct{ runtime.ObjectConvertor }

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
