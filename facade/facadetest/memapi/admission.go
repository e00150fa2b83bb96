package memapi

import "maps"

// Admission is what stands between a write and the storage, beside the schemas and the rules of the server itself: the
// webhooks of a cluster, for instance. Its functions are called with the server locked, so they must not ask it for
// anything. The objects have their apiVersion and kind.
type Admission struct {
	// Mutate changes an object that is about to be stored, as mutating webhooks, defaults and pruning schemas do. It
	// must leave the uid, the name and the resource version alone.
	Mutate func(of Resource, object map[string]any)
	// Validate refuses an object as it would be stored, as schemas and validating webhooks do: its error is the answer
	// if it is an apierrors.APIStatus, else an internal error of the server. See apierrors.NewInvalid.
	Validate func(of Resource, object map[string]any) error
}

// Admit puts an admission in the place of the former one; by default there is none.
func (s *Server) Admit(a Admission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission = a
}

// admit has an object changed and judged that is about to take the place of the one before.
func (s *Server) admit(t target, object, before map[string]any) error {
	if err := s.mutate(t, object); err != nil {
		return err
	}
	reviewed, err := s.review(t, true, object, before)
	if err != nil {
		return err
	}
	if reviewed != nil {
		clear(object)
		maps.Copy(object, reviewed)
	}
	if before != nil {
		tidy(metadataOf(object))
		if err := s.manage(t, before, object); err != nil {
			return err
		}
	}
	return s.validate(t, object, before)
}

func (s *Server) mutate(t target, object map[string]any) error {
	if s.admission.Mutate == nil {
		return nil
	}
	object["apiVersion"], object["kind"] = t.groupVersion().String(), t.Kind
	s.admission.Mutate(t.Resource, object)
	delete(object, "apiVersion")
	delete(object, "kind")
	return t.coerce(object)
}

// validate holds an object against the server's own rules and the schema, then against those of the admission.
func (s *Server) validate(t target, object, before map[string]any) error {
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
