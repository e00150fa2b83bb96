package memapi

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi/internal/schemas"
)

var definitionsResource = Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
	ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"}, StatusSubresource: true,
}

// Define serves the kinds of custom resource definitions in all their versions, and holds their objects against the
// schemas: unknown fields are dropped, defaults filled in, invalid objects refused with the words of the real server.
// Definitions that are there already are replaced. So are those that clients create; the difference is the error, which
// tells of a definition that is wrong, or that wants what is not done here: rules in CEL (see [WithoutRules]) and
// conversion webhooks, without [Server.Extend].
func (s *Server) Define(definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, crd := range definitions {
		if err := s.defineOne(crd); err != nil {
			return fmt.Errorf("defining %s: %w", crd.Name, err)
		}
	}
	return nil
}

func (s *Server) defineOne(crd *apiextensionsv1.CustomResourceDefinition) error {
	fresh := crd.DeepCopy()
	fresh.ResourceVersion, fresh.UID = "", ""
	data, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	t := s.target(definitionsResource, "", crd.Name)
	before, exists := s.objects[t.groupResource()][t.key()]
	if !exists {
		_, err = s.create(t, data)
		return err
	}
	object, err := t.parse(data)
	if err == nil {
		_, err = s.replace(t, before, object)
	}
	return err
}

// definitionOf is what the object says if it is a definition.
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

// understand refuses a definition that is wrong, or asks for too much.
func (s *Server) understand(t target, object, before map[string]any) (field.ErrorList, error) {
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
	d, problems := schemas.Read(crd, s.extensions.forSchemas())
	if former := s.schemas[servedAs(crd)]; former != nil && len(problems) == 0 && d.Convert != nil &&
		former.Storage != d.Storage && len(s.objects[servedAs(crd)]) > 0 {
		problems = append(problems, field.Invalid(field.NewPath("spec", "versions"), d.Storage,
			"the API server in memory does not move stored objects to another version by webhooks: delete them first"))
	}
	return problems, nil
}

// define serves what a custom resource definition says, or stops that.
func (s *Server) define(t target, before, after map[string]any) {
	was, _ := definitionOf(t, before)
	is, _ := definitionOf(t, after)
	for _, r := range served(was) {
		still := false
		for _, other := range served(is) {
			still = still || other.Plural == r.Plural && other.Version == r.Version
		}
		if !still && after == nil {
			s.remove(r.Group, r.Plural)
		} else if !still {
			s.drop(r.Group, r.Version, r.Plural)
		}
	}
	if is == nil {
		return
	}
	s.schemas[servedAs(is)], _ = schemas.Read(is, s.extensions.forSchemas())
	for _, r := range served(is) {
		s.install(r)
	}
}

// servedAs is the resource that a definition describes.
func servedAs(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
}

// served are the resources of a definition, one for each version.
func served(crd *apiextensionsv1.CustomResourceDefinition) []Resource {
	if crd == nil {
		return nil
	}
	var all []Resource
	names := crd.Spec.Names
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		all = append(all, Resource{
			Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind, Plural: names.Plural, Singular: names.Singular,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced:        crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			StatusSubresource: v.Subresources != nil && v.Subresources.Status != nil, Scale: scaleIn(v.Subresources),
		})
	}
	return all
}

// scaleIn is the subresource scale of a definition.
func scaleIn(given *apiextensionsv1.CustomResourceSubresources) *Scale {
	if given == nil || given.Scale == nil {
		return nil
	}
	scale := &Scale{SpecReplicas: given.Scale.SpecReplicasPath, StatusReplicas: given.Scale.StatusReplicasPath}
	if given.Scale.LabelSelectorPath != nil {
		scale.Selector = *given.Scale.LabelSelectorPath
	}
	return scale
}

// target is an object of a resource, as the server itself deals with it.
func (s *Server) target(r Resource, namespace, name string) target {
	t := target{Resource: r, namespace: namespace, name: name, notes: &notes{}}
	if d := s.schemas[r.groupResource()]; d != nil {
		t.schema, t.storage = d.Versions[r.Version], d.Versions[d.Storage]
		t.stored, t.convert = d.Storage, d.Convert
	}
	return t
}
