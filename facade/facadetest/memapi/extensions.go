package memapi

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SetExtensions sets the extensions. It must be called before the first definition is added.
func (s *Server) SetExtensions(with Extensions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extensions = with
}

// IgnoreRules makes [Server.Define] accept definitions with rules in CEL, which are not checked. Call it before Define.
// Use [Admission] to implement in Go the rules that a test needs.
func (s *Server) IgnoreRules() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extensions.CompileRules = func(*structuralschema.Structural) func(_, _ map[string]any) field.ErrorList {
		return nil
	}
}

// Equivalents returns the other versions in which the objects of a resource are served. A webhook can be registered for
// another version than the one of the request.
func (s *Server) Equivalents(of schema.GroupVersionResource) (all []Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := Resource{Group: of.Group, Plural: of.Resource}.groupResource()
	for _, r := range s.resources {
		if r.groupResource() == same && r.GroupVersionResource() != of {
			all = append(all, r)
		}
	}
	return all
}

// Convert returns an object of a resource in another version, as JSON. An empty text stays empty, because admission
// requests may lack an object.
func (s *Server) Convert(text []byte, from schema.GroupVersionResource, to Resource) ([]byte, error) {
	if len(text) == 0 {
		return text, nil
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	// The lock is not held during the conversion, which may call a webhook of this process.
	s.mu.Lock()
	t := s.newTarget(to, "", "")
	s.mu.Unlock()
	source := target{Resource: Resource{Group: from.Group, Plural: from.Resource}}
	// Events differ between their two APIs in the names of their fields.
	if source.isNewEvent() != t.isNewEvent() {
		renameEvent(object, source.isNewEvent())
	}
	if t.convert != nil && from.Version != to.Version {
		var err error
		if object, err = t.convertTo(object, from.Version, to.Version); err != nil {
			return nil, err
		}
	}
	delete(object, "apiVersion")
	delete(object, "kind")
	return json.Marshal(t.withKind(object))
}
