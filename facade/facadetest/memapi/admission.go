package memapi

import "maps"

// Admission holds functions that change or reject a write before it is stored, such as those of a cluster's webhooks.
// They run in addition to the schemas and the server's own rules. The server is locked while they run, so they must not
// send requests to it. The objects have their apiVersion and kind.
type Admission struct {
	// Mutate changes an object before it is stored, as mutating webhooks, defaults and pruning schemas do. It must not
	// change the uid, the name or the resource version.
	Mutate func(of Resource, object map[string]any)
	// Validate rejects an object after mutation, as schemas and validating webhooks do. The client gets its error if
	// that is an apierrors.APIStatus, and an internal server error otherwise. See apierrors.NewInvalid.
	Validate func(of Resource, object map[string]any) error
}

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

// mutateObject calls the admission's Mutate. Stored objects do not have an apiVersion and a kind, so both are added for the
// call only.
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
