package memapi

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
)

// preconditions of a deletion.
type preconditions struct {
	UID             *string `json:"uid"`
	ResourceVersion *string `json:"resourceVersion"`
}

func (s *Server) delete(t target, data []byte) (map[string]any, error) {
	before, ok := s.objects[t.groupResource()][t.key()]
	if !ok {
		return nil, notFound(t)
	}
	var options struct {
		Preconditions preconditions `json:"preconditions"`
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	was := metadataOf(before)
	for name, wanted := range map[string]*string{
		"uid": options.Preconditions.UID, "resourceVersion": options.Preconditions.ResourceVersion,
	} {
		if wanted != nil && *wanted != was[name] {
			return nil, apierrors.NewConflict(t.groupResource(), t.name,
				fmt.Errorf("precondition failed: %s in precondition: %s, in object: %v", name, *wanted, was[name]))
		}
	}
	finalizers, _ := was["finalizers"].([]any)
	switch {
	case len(finalizers) == 0:
		s.discard(t, before)
		return success(t, was["uid"]), nil
	case was["deletionTimestamp"] != nil:
		return t.shown(before), nil
	}
	object := cloned(before)
	metadata := metadataOf(object)
	metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = timestamp(), int64(0)
	if !t.Plain {
		metadata["generation"] = generation(before) + 1
	}
	metadata["resourceVersion"] = s.next()
	s.keep(t, before, object)
	return t.shown(object), nil
}
