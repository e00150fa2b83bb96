package memapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
)

// parseDeleteOptions reads the options of a deletion from the body, or from the query if the body is empty.
func parseDeleteOptions(query url.Values, data []byte) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(data) > 0 {
		if err := json.Unmarshal(data, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, options, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	// For example, propagationPolicy and orphanDependents exclude each other.
	if problems := validation.ValidateDeleteOptions(options); len(problems) > 0 {
		return nil, apierrors.NewInvalid(
			schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", problems,
		)
	}
	return options, nil
}

// deleteObject deletes an object: it removes the object at once, or sets its deletionTimestamp if it has finalizers.
func (s *Server) deleteObject(t target, options *metav1.DeleteOptions) (map[string]any, error) {
	before, ok := s.objects[t.groupResource()][t.objectKey()]
	if !ok {
		return nil, notFound(t)
	}
	// A dry run is requested in the options, which may be in the body.
	t.isDryRun = t.isDryRun || len(options.DryRun) > 0
	was := metadataOf(before)
	if err := t.checkPreconditions(was, options.Preconditions); err != nil {
		return nil, err
	}
	// Webhooks are called after the preconditions, so a request with a stale precondition does not reach them.
	if _, err := s.reviewObject(t, false, nil, before); err != nil {
		return nil, err
	}
	// A namespace is only marked here. It disappears when it is empty.
	if shown, ok := s.terminateNamespace(t, before); ok {
		return shown, nil
	}
	held, _ := was["finalizers"].([]any)
	// The finalizers decide whether the object is removed now or only marked.
	finalizers := propagationFinalizers(s.withCleanup(t, before, held), options)
	if len(finalizers) == 0 {
		s.removeObject(t, before)
		return deletionStatus(t, was["uid"]), nil
	}
	// A repeated deletion must not create a new version, or watches would see a change.
	if was["deletionTimestamp"] != nil && sets.New(held...).Equal(sets.New(finalizers...)) {
		return t.servedObject(before), nil
	}
	object := cloneObject(before)
	metadata := metadataOf(object)
	metadata["finalizers"] = finalizers
	if was["deletionTimestamp"] == nil {
		metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = currentTimestamp(), int64(0)
		// The deletion counts as a change of the desired state, so it increases the generation.
		if !t.Plain {
			metadata["generation"] = generationOf(before) + 1
		}
	}
	// The change is visible to watches as a modification.
	s.setResourceVersion(t, metadata)
	s.storeObject(t, before, object)
	return t.servedObject(object), nil
}

// checkPreconditions checks the preconditions of the client against the stored metadata.
func (t target) checkPreconditions(was map[string]any, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	refused := func(name, wanted string) error {
		return apierrors.NewConflict(t.qualifiedName(), t.name,
			fmt.Errorf("precondition failed: %s in precondition: %s, in object: %v", name, wanted, was[name]))
	}
	if p.UID != nil && string(*p.UID) != was["uid"] {
		return refused("uid", string(*p.UID))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != was["resourceVersion"] {
		return refused("resourceVersion", *p.ResourceVersion)
	}
	return nil
}

// propagationFinalizers returns the finalizers of an object that is being deleted. The propagation policy is stored as
// a finalizer of the garbage collector, which it processes later.
func propagationFinalizers(finalizers []any, options *metav1.DeleteOptions) []any {
	former := options.OrphanDependents //nolint:staticcheck // clients may still send it
	orphan := slices.Contains(finalizers, any(metav1.FinalizerOrphanDependents))
	foreground := slices.Contains(finalizers, any(metav1.FinalizerDeleteDependents))
	// Finalizers that are set already define the policy, unless the request has a policy of its own.
	switch policy := options.PropagationPolicy; {
	case former != nil:
		// The older option has precedence over finalizers that are already set.
		orphan, foreground = *former, false
	case policy != nil:
		orphan = *policy == metav1.DeletePropagationOrphan
		foreground = *policy == metav1.DeletePropagationForeground
	}
	// The finalizers of the garbage collector are added again below, at the end of the list.
	var all []any
	for _, one := range finalizers {
		if one != metav1.FinalizerOrphanDependents && one != metav1.FinalizerDeleteDependents {
			all = append(all, one)
		}
	}
	if orphan {
		all = append(all, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		all = append(all, metav1.FinalizerDeleteDependents)
	}
	return all
}

// deleteCollection deletes the selected objects of a collection one by one, and returns them as a list.
func (s *Server) deleteCollection(t target, query url.Values, options *metav1.DeleteOptions) (map[string]any, error) {
	wanted, err := s.parseInterest(t, query)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, object := range s.matchingObjects(t, wanted) {
		// A copy of the target for each object, because the names differ.
		one := t
		one.namespace, _ = metadataOf(object)["namespace"].(string)
		one.name, _ = metadataOf(object)["name"].(string)
		items = append(items, t.servedObject(object))
		err := errChangedInReview
		for n := 0; n < maxReviews && errors.Is(err, errChangedInReview); n++ {
			_, err = s.deleteObject(one, options)
		}
		// Another client can delete an object while it is reviewed.
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	answer := s.listOf(t, items)
	wanted.shards.addInfo(t, metadataOf(answer))
	return answer, nil
}
