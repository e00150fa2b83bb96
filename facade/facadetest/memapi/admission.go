package memapi

import (
	"fmt"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SetAdmission replaces the admission of the server. By default, a server does not have any.
func (s *Server) SetAdmission(a Admission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission = a
}

// admitObject mutates, reviews and validates an object before it is stored. The argument before is nil for a creation.
func (s *Server) admitObject(t target, object, before map[string]any) error {
	if err := s.mutateObject(t, object); err != nil {
		return err
	}
	// A review is missing in the first attempt to serve the request; the error then ends that attempt.
	reviewed, err := s.reviewObject(t, true, object, before)
	if err != nil {
		return err
	}
	if reviewed != nil {
		// The caller keeps a reference to the map, so its content is replaced.
		clear(object)
		maps.Copy(object, reviewed)
	}
	// The managed fields are computed after all mutations, so that changes by webhooks are attributed to the request.
	if before != nil {
		// Empty metadata fields do not count as set, so a manager must not own them.
		dropEmptyMetadata(metadataOf(object))
		if err := s.updateManagedFields(t, before, object); err != nil {
			return err
		}
	}
	return s.validateObject(t, object, before)
}

// mutateObject calls the admission's Mutate. Stored objects do not have an apiVersion and a kind, so both are added for
// the call only.
func (s *Server) mutateObject(t target, object map[string]any) error {
	if s.admission.Mutate == nil {
		return nil
	}
	object["apiVersion"], object["kind"] = t.groupVersion().String(), t.Kind
	s.admission.Mutate(t.Resource, object)
	delete(object, "apiVersion")
	delete(object, "kind")
	// The mutation may have added fields that the schema does not have.
	return t.applySchema(object)
}

// validateObject checks an object against the server's own rules and the schema, then against the admission and the
// validating reviewers. The order is that of the real server: validating webhooks only see objects that conform to
// their schema.
func (s *Server) validateObject(t target, object, before map[string]any) error {
	// The metadata and the schema are checked completely, so that the client gets all problems in one answer.
	problems, err := t.validateMetadata(object, before)
	if err != nil {
		return err
	}
	wrong, err := s.checkDefinition(t, object, before)
	if err != nil {
		return err
	}
	problems = append(append(problems, wrong...), t.validateSchema(object, before)...)
	if len(problems) > 0 {
		return t.invalidError(problems)
	}
	if s.admission.Validate != nil {
		if err := s.admission.Validate(t.Resource, t.withKind(cloneObject(object))); err != nil {
			return err
		}
	}
	_, err = s.reviewObject(t, false, object, before)
	return err
}

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
