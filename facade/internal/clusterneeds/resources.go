package clusterneeds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// clusterScoped are the kinds of Kubernetes whose objects have no namespace. A test compares them with the clients of
// client-go.
var clusterScoped = []string{
	"CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle",
	"ComponentStatus", "CustomResourceDefinition", "DeviceClass", "DeviceTaintRule", "FlowSchema", "IPAddress",
	"IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
	"Namespace", "Node", "PersistentVolume", "PriorityClass", "PriorityLevelConfiguration",
	"ResourcePoolStatusRequest", "ResourceSlice",
	"RuntimeClass", "SelfSubjectAccessReview", "SelfSubjectReview", "SelfSubjectRulesReview", "ServiceCIDR",
	"StorageClass", "StorageVersion", "StorageVersionMigration", "SubjectAccessReview", "TokenReview",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	"VolumeAttachment", "VolumeAttributesClass",
}

// allVerbs are the verbs of objects that are stored.
var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// formerGroup had kinds that are now in other groups. Their names would be ambiguous.
const formerGroup = "extensions"

// BuiltIn returns the resources of Kubernetes by the types in a scheme, such as that of client-go, with the plurals,
// scopes and status subresources that the API server has. Short names and categories are unknown. CRDs themselves are
// included; kinds of other groups with a dot that is not of k8s.io are not, as their plurals are unknown.
func BuiltIn(scheme *runtime.Scheme) (all []discovery.Resource) {
	crds := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	known := map[schema.GroupKind]bool{}
	for _, gv := range scheme.PrioritizedVersionsAllGroups() {
		if !isKubernetes(gv.Group) {
			continue
		}
		types := scheme.KnownTypes(gv)
		for kind, typ := range types {
			of := gv.WithKind(kind)
			// Only resources have lists. Reviews are created and not stored.
			if _, ok := types[kind+"List"]; ok || strings.HasSuffix(kind, "Review") {
				// The preferred version of a kind comes first.
				all = append(all, builtIn(of, typ, !known[of.GroupKind()] || of == crds))
			}
			known[of.GroupKind()] = true
		}
	}
	all = append(all, builtIn(crds, reflect.TypeFor[struct{ Status any }](), true))
	slices.SortStableFunc(all, func(a, b discovery.Resource) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// isKubernetes reports whether the group is served by Kubernetes itself.
func isKubernetes(group string) bool {
	return (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")) && group != formerGroup
}

// builtIn returns the resource of a kind of Kubernetes. All of its types with a status have it as a subresource.
func builtIn(kind schema.GroupVersionKind, typ reflect.Type, preferred bool) discovery.Resource {
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	r := discovery.Resource{
		GroupVersionKind: kind, Plural: plural.Resource, Singular: singular.Resource,
		Namespaced: !slices.Contains(clusterScoped, kind.Kind), Verbs: allVerbs, Preferred: preferred,
	}
	if kind.Kind == "Endpoints" {
		r.Plural, r.Singular = "endpoints", "endpoints"
	}
	if _, ok := typ.FieldByName("Status"); ok {
		r.Subresources = []string{"status"}
	}
	return r
}

// crdFields are the fields of a CRD that matter here.
type crdFields struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Names        struct {
			Kind, Plural, Singular string
			ShortNames, Categories []string
		}
		Versions []struct {
			Name         string
			Served       bool
			Subresources struct{ Status *struct{} }
		}
	}
}

// FromCRD returns the resources of a CRD in JSON, in its served versions. Errors name the CRD and the field.
func FromCRD(text []byte) (all []discovery.Resource, err error) {
	var fields crdFields
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("reading CRD %q: %w", fields.Metadata.Name, err)
	}
	spec := fields.Spec
	switch {
	case spec.Group == "" || spec.Names.Kind == "" || spec.Names.Plural == "":
		return nil, fmt.Errorf("CRD %q: spec.group, spec.names.kind and spec.names.plural are needed",
			fields.Metadata.Name)
	case spec.Scope != "Namespaced" && spec.Scope != "Cluster":
		return nil, fmt.Errorf(
			"CRD %q: spec.scope is %q: it is Namespaced or Cluster", fields.Metadata.Name, spec.Scope,
		)
	}
	preferred := ""
	for _, v := range spec.Versions {
		if !v.Served {
			continue
		}
		r := discovery.Resource{
			GroupVersionKind: schema.GroupVersionKind{Group: spec.Group, Version: v.Name, Kind: spec.Names.Kind},
			Plural:           spec.Names.Plural,
			Singular:         cmp.Or(spec.Names.Singular, strings.ToLower(spec.Names.Kind)),
			Shortcuts:        spec.Names.ShortNames, Categories: spec.Names.Categories,
			Namespaced: spec.Scope == "Namespaced", Verbs: allVerbs,
		}
		if v.Subresources.Status != nil {
			r.Subresources = []string{"status"}
		}
		if preferred == "" || version.CompareKubeAwareVersionStrings(v.Name, preferred) > 0 {
			preferred = v.Name
		}
		all = append(all, r)
	}
	// As in the API server, the most stable and newest version is preferred.
	for i, r := range all {
		all[i].Preferred = r.Version == preferred
	}
	return all, nil
}
