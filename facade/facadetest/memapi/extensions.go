package memapi

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Extensions implement features of custom resource definitions that need large libraries or other processes and are
// therefore not part of this package. A definition that needs a feature whose field is nil is refused. Without
// ValidateDefinition, definitions are accepted with fewer checks.
type Extensions struct {
	// ValidateDefinition validates a definition as the real server does; was is nil for a new one. Without it, only the
	// parts that this server uses are checked.
	ValidateDefinition func(is, was *apiextensionsv1.CustomResourceDefinition) field.ErrorList
	// CompileRules compiles the CEL rules of a schema. The returned function checks a new object, or one that replaces
	// another.
	CompileRules func(structural *structuralschema.Structural) func(object, before map[string]any) field.ErrorList
	// NewConverter prepares the conversion webhook of a definition. The returned function converts one object, which
	// has its apiVersion and kind, to a version. The server waits for it, in most cases while it is locked.
	NewConverter func(crd *apiextensionsv1.CustomResourceDefinition) (
		func(object map[string]any, to string) (map[string]any, error), error,
	)
}

// SetExtensions sets the extensions. It must be called before the first definition is added.
func (s *Server) SetExtensions(with Extensions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extensions = with
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
