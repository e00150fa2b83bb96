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

// Admit replaces the admission of the server. By default, a server does not have any.
func (s *Server) Admit(a Admission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission = a
}

// admit mutates, reviews and validates an object before it is stored. The argument before is nil for a creation.
func (s *Server) admit(t target, object, before map[string]any) error {
	if err := s.mutate(t, object); err != nil {
		return err
	}
	// A review is missing in the first attempt to serve the request; the error then ends that attempt.
	reviewed, err := s.review(t, true, object, before)
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
		tidy(metadataOf(object))
		if err := s.manage(t, before, object); err != nil {
			return err
		}
	}
	return s.validate(t, object, before)
}

// mutate calls the admission's Mutate. Stored objects do not have an apiVersion and a kind, so both are added for the
// call only.
func (s *Server) mutate(t target, object map[string]any) error {
	if s.admission.Mutate == nil {
		return nil
	}
	object["apiVersion"], object["kind"] = t.groupVersion().String(), t.Kind
	s.admission.Mutate(t.Resource, object)
	delete(object, "apiVersion")
	delete(object, "kind")
	// The mutation may have added fields that the schema does not have.
	return t.coerce(object)
}

// validate checks an object against the server's own rules and the schema, then against the admission and the
// validating reviewers. The order is that of the real server: validating webhooks only see objects that conform to
// their schema.
func (s *Server) validate(t target, object, before map[string]any) error {
	// The metadata and the schema are checked completely, so that the client gets all problems in one answer.
	problems, err := t.valid(object, before)
	if err != nil {
		return err
	}
	wrong, err := s.understand(t, object, before)
	if err != nil {
		return err
	}
	problems = append(append(problems, wrong...), t.conforms(object, before)...)
	if len(problems) > 0 {
		return t.invalid(problems)
	}
	if s.admission.Validate != nil {
		if err := s.admission.Validate(t.Resource, t.named(cloned(object))); err != nil {
			return err
		}
	}
	_, err = s.review(t, false, object, before)
	return err
}
