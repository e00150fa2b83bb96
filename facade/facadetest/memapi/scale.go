package memapi

import (
	"net/http"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// scalePaths returns the paths of the definition or of a built-in kind, or nil if the kind does not have a scale
// subresource.
func (t target) scalePaths() *apiextensionsv1.CustomResourceSubresourceScale {
	built := []string{"deployments", "replicasets", "statefulsets", "replicationcontrollers"}
	if t.Scale != nil || !slices.Contains(built, t.Plural) || t.Group != "apps" && t.Group != "" {
		return t.Scale
	}
	return &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
		LabelSelectorPath: ptr.To(".spec.selector"),
	}
}

// serveScale answers a request for the scale subresource. A write changes the number of replicas in the object itself.
func (s *Server) serveScale(r *http.Request, t target, body []byte) (map[string]any, error) {
	before, ok := s.objects[t.groupResource()][t.objectKey()]
	if !ok {
		return nil, notFound(t)
	}
	shown, err := t.scaleOf(t.servedObject(before))
	if err != nil || r.Method == http.MethodGet {
		return shown, err
	}
	// A patch is relative to the scale, and not to the object.
	if r.Method == http.MethodPatch {
		if body, err = t.patchedScale(contentTypeOf(r), shown, body); err != nil {
			return nil, err
		}
	}
	wanted := &autoscalingv1.Scale{}
	if err := json.Unmarshal(body, wanted); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if wanted.Name != t.name {
		return nil, t.otherName(wanted.Name)
	}
	// The error names the kind Scale, not that of the object.
	if wanted.Spec.Replicas < 0 {
		refused := t
		refused.Group, refused.Kind = autoscalingv1.GroupName, "Scale"
		return nil, refused.invalidError(field.ErrorList{field.Invalid(
			field.NewPath("spec", "replicas"), wanted.Spec.Replicas, "must be greater than or equal to 0",
		)})
	}
	// Only the number of replicas changes; all other fields come from the stored object.
	object := t.readStored(before)
	path := pathOf(t.scalePaths().SpecReplicasPath)
	if err := unstructured.SetNestedField(object, int64(wanted.Spec.Replicas), path...); err != nil {
		return nil, internalError(err)
	}
	if err := s.reviewScale(t, shown, object); err != nil {
		return nil, err
	}
	// The version of the request is checked against that of the object.
	metadataOf(object)["resourceVersion"] = wanted.ResourceVersion
	t.subresource, t.reviewContext = "", nil // the number of replicas belongs to the spec, and is reviewed already
	changed, err := s.replaceObject(t, before, object)
	if err != nil {
		return nil, err
	}
	return t.scaleOf(changed)
}

// reviewScale asks the webhooks for the scale subresource to review a new number of replicas. They receive objects of
// kind Scale, and may change the number.
func (s *Server) reviewScale(t target, before, object map[string]any) error {
	after, err := t.scaleOf(object)
	if err != nil {
		return err
	}
	// A scale does not conform to the object's schema.
	t.schema, t.StatusSubresource = nil, false
	t.reviewedKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	changed, err := s.reviewObject(t, true, after, before)
	if err != nil {
		return err
	}
	if changed != nil {
		replicas, _, err := unstructured.NestedInt64(changed, "spec", "replicas")
		if err != nil {
			return internalError(err)
		}
		path := pathOf(t.scalePaths().SpecReplicasPath)
		if err := unstructured.SetNestedField(object, replicas, path...); err != nil {
			return internalError(err)
		}
		after = changed
		after["apiVersion"], after["kind"] = autoscalingv1.SchemeGroupVersion.String(), "Scale"
	}
	_, err = s.reviewObject(t, false, after, before)
	return err
}

// scaleOf returns the scale of an object.
func (t target) scaleOf(object map[string]any) (map[string]any, error) {
	paths := t.scalePaths()
	metadata := metadataOf(object)
	shown := &autoscalingv1.Scale{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}}
	// Missing fields count as zero replicas.
	replicas, _, _ := unstructured.NestedInt64(object, pathOf(paths.SpecReplicasPath)...)
	current, _, _ := unstructured.NestedInt64(object, pathOf(paths.StatusReplicasPath)...)
	shown.Spec.Replicas, shown.Status.Replicas = int32(replicas), int32(current)
	selector, _, _ := unstructured.NestedFieldNoCopy(object, pathOf(ptr.Deref(paths.LabelSelectorPath, ""))...)
	// The selector of a definition is a text, and that of a built-in kind is structured.
	switch selector := selector.(type) {
	case string:
		shown.Status.Selector = selector
	case map[string]any:
		parsed := &metav1.LabelSelector{}
		if t.Group == "" { // replication controllers have plain labels as their selector
			selector = map[string]any{"matchLabels": selector}
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, parsed); err != nil {
			return nil, internalError(err)
		}
		shown.Status.Selector = metav1.FormatLabelSelector(parsed)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shown)
	if err != nil {
		return nil, internalError(err)
	}
	keepFields(metadataOf(content), metadata, "name", "namespace", "uid", "resourceVersion", "creationTimestamp")
	return content, nil
}

// patchedScale applies a patch to the scale. Server-side apply is not supported for it.
func (t target) patchedScale(form string, shown map[string]any, patch []byte) ([]byte, error) {
	document, err := json.Marshal(shown)
	if err != nil {
		return nil, internalError(err)
	}
	if forms := t.patchTypes(); form == applyPatchType || !slices.Contains(forms, form) {
		return nil, unsupportedContentType(slices.DeleteFunc(forms,
			func(one string) bool { return one == applyPatchType }))
	}
	// The merge uses the Go type of a scale.
	t.Group, t.Version, t.Kind = autoscalingv1.GroupName, "v1", "Scale"
	return t.applyPatch(form, document, patch)
}

// pathOf splits a path such as ".spec.replicas" into its fields.
func pathOf(text string) []string { return strings.Split(strings.TrimPrefix(text, "."), ".") }
