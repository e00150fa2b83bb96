package memapi

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateMetadata validates the metadata with the functions of the real server.
func (t target) validateMetadata(object, before map[string]any) (field.ErrorList, error) {
	now, err := decodeMetadata(object)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	at := field.NewPath("metadata")
	problems := apivalidation.ValidateObjectMeta(now, t.Namespaced, t.nameRule(), at)
	// Some metadata fields are immutable, such as the name.
	if before != nil {
		then, err := decodeMetadata(before)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		return append(problems, apivalidation.ValidateObjectMetaUpdate(now, then, at)...), nil
	}
	return append(problems, t.nameProblems(now.Name)...), nil
}

// nameRule returns the rule for names of the kind.
func (t target) nameRule() apivalidation.ValidateNameFunc {
	n, _ := t.nativeKind()
	switch {
	case n.hasProperty("label"):
		return apivalidation.NameIsDNSLabel
	case n.hasProperty("segment") &&
		t.Group == rbacv1.GroupName: // RBAC kinds apply the full rule to a generateName as well
		return func(name string, _ bool) []string { return path.IsValidPathSegmentName(name) }
	case n.hasProperty("segment"):
		return path.ValidatePathSegmentName
	}
	return apivalidation.NameIsDNSSubdomain
}

// maxCronJobNameLength is the maximum length of the name of a cron job. It leaves room for the suffix in the names of
// its jobs.
const maxCronJobNameLength = 52

// nameProblems checks the name of a new object whose name becomes a part of other names or labels.
func (t target) nameProblems(name string) (problems field.ErrorList) {
	n, _ := t.nativeKind()
	switch {
	case n.kind == "CronJob" && len(name) > maxCronJobNameLength:
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
			fmt.Sprintf("must be no more than %d characters", maxCronJobNameLength))}
	case n.kind == "Job": // the pods of the job have a label with its name
		for _, text := range validation.IsValidLabelValue(name) {
			problems = append(problems, field.Invalid(field.NewPath("spec", "template", "labels"), name, text))
		}
	}
	return problems
}

// decodeMetadata returns the typed metadata of an object.
func decodeMetadata(object map[string]any) (*metav1.ObjectMeta, error) {
	metadata := &metav1.ObjectMeta{}
	for _, name := range []string{"labels", "annotations"} {
		if _, ok := metadataOf(object)[name].(map[string]any); metadataOf(object)[name] != nil && !ok {
			return nil, fmt.Errorf("metadata.%s is not a mapping", name)
		}
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadataOf(object), metadata)
	if err != nil {
		return nil, fmt.Errorf("the metadata cannot be decoded: %w", err)
	}
	return metadata, nil
}
