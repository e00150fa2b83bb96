package memapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi/internal/schemas"
)

// definitionsResource is the resource of custom resource definitions themselves.
var definitionsResource = Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
	ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"}, StatusSubresource: true,
}

// Define serves the kinds of custom resource definitions in all their versions. Objects are processed by their schemas:
// unknown fields are dropped, defaults filled in, and invalid objects refused with the messages of the real server.
// Existing definitions are replaced.
// Clients can create definitions as well. Define returns an error for a definition that is invalid or needs an
// unsupported feature: without [Server.SetExtensions], that is a CEL rule (see [Server.IgnoreRules]) or a conversion
// webhook.
func (s *Server) Define(definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Definitions before an invalid one remain served.
	for _, crd := range definitions {
		if err := s.defineOne(crd); err != nil {
			return fmt.Errorf("defining %s: %w", crd.Name, err)
		}
	}
	return nil
}

// defineOne creates a definition or replaces an existing one, as a client would.
func (s *Server) defineOne(crd *apiextensionsv1.CustomResourceDefinition) error {
	fresh := crd.DeepCopy()
	// The definition may come from another server; its version and uid would cause a conflict here.
	fresh.ResourceVersion, fresh.UID = "", ""
	data, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	t := s.newTarget(definitionsResource, "", crd.Name)
	before, exists := s.objects[t.groupResource()][t.objectKey()]
	if !exists {
		_, err = s.createObject(t, data)
		return err
	}
	object, err := t.parseObject(data)
	if err == nil {
		_, err = s.replaceObject(t, before, object)
	}
	return err
}

// definitionOf decodes an object that is a definition. It returns nil without an error for every other object.
func definitionOf(t target, object map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	if t.groupResource() != definitionsResource.groupResource() || object == nil {
		return nil, nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(data, crd); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return crd, nil
}

// checkDefinition validates a definition. It also refuses definitions that need an unsupported feature.
func (s *Server) checkDefinition(t target, object, before map[string]any) (field.ErrorList, error) {
	crd, err := definitionOf(t, object)
	if crd == nil || err != nil {
		return nil, err
	}
	was, err := definitionOf(t, before)
	if err != nil {
		return nil, err
	}
	if validate := s.extensions.ValidateDefinition; validate != nil {
		if problems := validate(crd, was); len(problems) > 0 {
			return problems, nil
		}
	}
	d, problems := schemas.Read(crd, s.extensions.CompileRules, s.extensions.NewConverter)
	// Objects stay in the version in which they were stored. With a conversion webhook, the server would decode them as
	// the new storage version, so it refuses the change.
	if former := s.schemas[servedAs(crd)]; former != nil && len(problems) == 0 && d.Convert != nil &&
		former.Storage != d.Storage && len(s.objects[servedAs(crd)]) > 0 {
		problems = append(problems, field.Invalid(field.NewPath("spec", "versions"), d.Storage,
			"the API server in memory does not move stored objects to another version by webhooks: delete them first"))
	}
	return problems, nil
}

// updateServedKinds updates the served resources after a definition was created, changed or deleted.
func (s *Server) updateServedKinds(t target, before, after map[string]any) {
	// Validation has decoded both already. A definition that was stored without validation and does not decode is
	// ignored.
	was, _ := definitionOf(t, before)
	is, _ := definitionOf(t, after)
	// Versions that are no longer served are removed first.
	for _, r := range servedResources(was) {
		still := slices.ContainsFunc(servedResources(is), func(other Resource) bool {
			return other.Plural == r.Plural && other.Version == r.Version
		})
		// A deleted definition takes its objects with it; a version that is no longer served does not.
		if !still && after == nil {
			s.removeResource(r.Group, r.Plural)
		} else if !still {
			s.dropResource(r.Group, r.Version, r.Plural)
		}
	}
	if is == nil {
		return
	}
	// Problems are ignored here: validation has refused definitions with problems already.
	s.schemas[servedAs(is)], _ = schemas.Read(is, s.extensions.CompileRules, s.extensions.NewConverter)
	for _, r := range servedResources(is) {
		s.installResource(r)
	}
}

// servedAs returns the resource that a definition describes.
func servedAs(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
}

// servedResources returns the resources of a definition, one for each served version.
func servedResources(crd *apiextensionsv1.CustomResourceDefinition) []Resource {
	if crd == nil {
		return nil
	}
	var all []Resource
	names := crd.Spec.Names
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		// Each version is a resource of its own, because clients address versions separately.
		served := Resource{
			Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind, Plural: names.Plural, Singular: names.Singular,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		}
		if v.Subresources != nil {
			served.StatusSubresource, served.Scale = v.Subresources.Status != nil, v.Subresources.Scale
		}
		all = append(all, served)
	}
	return all
}

// newTarget returns the target for an object of a resource. The server uses it for its own changes as well as for
// requests.
func (s *Server) newTarget(r Resource, namespace, name string) target {
	t := target{Resource: r, namespace: namespace, name: name, notes: &notes{}}
	// Resources without a definition do not have a schema and are stored as sent.
	if d := s.schemas[r.groupResource()]; d != nil {
		t.schema, t.storageSchema = d.Versions[r.Version], d.Versions[d.Storage]
		t.storageVersion, t.convert = d.Storage, d.Convert
	}
	return t
}

// defaultDefinition fills in the optional names and the conversion strategy of a definition.
func (t target) defaultDefinition(object map[string]any) {
	spec, ok := object["spec"].(map[string]any)
	if t.groupResource() != definitionsResource.groupResource() || !ok {
		return
	}
	// The strategy None only changes the apiVersion of objects.
	if spec["conversion"] == nil {
		spec["conversion"] = map[string]any{"strategy": string(apiextensionsv1.NoneConverter)}
	}
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	for name, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if given, _ := names[name].(string); given == "" && kind != "" {
			names[name] = value
		}
	}
}

// setDefinitionStatus writes the status of a definition before it is stored, because the definition is served at once.
// The real server writes the same conditions and names a moment later.
func (t target) setDefinitionStatus(object map[string]any) {
	if t.groupResource() != definitionsResource.groupResource() {
		return
	}
	names, _, _ := unstructured.NestedMap(object, "spec", "names")
	status, ok := object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		object["status"] = status
	}
	status["acceptedNames"] = names
	// Versions that were once the storage version stay in the list, as objects may still be stored in them.
	stored, _, _ := unstructured.NestedStringSlice(object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(object, "spec", "versions")
	for _, one := range versions {
		version, _ := one.(map[string]any)
		if name, _ := version["name"].(string); version["storage"] == true && !slices.Contains(stored, name) {
			stored = append(stored, name)
		}
	}
	all := []any{}
	for _, name := range stored {
		all = append(all, name)
	}
	status["storedVersions"] = all
	// An update keeps the conditions with their times.
	if status["conditions"] != nil {
		return
	}
	conditions := []any{}
	for _, one := range []struct{ kind, reason, message string }{
		{string(apiextensionsv1.NamesAccepted), "NoConflicts", "no conflicts found"},
		{string(apiextensionsv1.Established), "InitialNamesAccepted", "the initial names have been accepted"},
	} {
		conditions = append(conditions, map[string]any{
			"type": one.kind, "status": "True", "reason": one.reason, "message": one.message,
			"lastTransitionTime": currentTimestamp(),
		})
	}
	status["conditions"] = conditions
}

// cleanupFinalizer protects a definition that is being deleted while objects of its kind exist. Its name must equal
// that of the real server.
const cleanupFinalizer = apiextensionsv1.CustomResourceCleanupFinalizer

// managesDefinition reports whether the target is a definition and definitions are deleted together with their objects.
func (s *Server) managesDefinition(t target) bool {
	return s.namespaces != nil && t.groupResource() == definitionsResource.groupResource()
}

// withCleanup returns the finalizers of an object that is about to be deleted, with the cleanup finalizer if it is a
// definition that still has objects.
func (s *Server) withCleanup(t target, object map[string]any, held []any) []any {
	crd, err := definitionOf(t, object)
	// The finalizer is added at most once, when the deletion starts.
	isNeeded := s.managesDefinition(t) && err == nil && !isBeingDeleted(object) &&
		len(s.objects[servedAs(crd)]) > 0 && !slices.Contains(held, any(cleanupFinalizer))
	if !isNeeded {
		return held
	}
	return append(slices.Clone(held), cleanupFinalizer)
}

// emptyDefinitions deletes the objects of definitions that are being deleted. It removes the finalizer of definitions
// without objects, so that they disappear if this was their last one.
func (s *Server) emptyDefinitions() {
	t := s.newTarget(definitionsResource, "", "")
	for _, object := range s.objectsWith(t, isBeingDeleted) {
		crd, err := definitionOf(t, object)
		if err == nil && hasFinalizer(object, cleanupFinalizer) &&
			s.deleteAll(func(one target) bool { return one.groupResource() == servedAs(crd) }) {
			s.removeFinalizer(s.newTarget(definitionsResource, "", crd.Name), cleanupFinalizer)
		}
	}
}
