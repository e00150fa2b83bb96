package memapi

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
)

// Put stores an object as it is, whatever the rules: with its uid, its finalizers and a deletion under way. Only its
// resource version is new. It ends an object of the same name with another uid.
func (s *Server) Put(r Resource, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(r, object)
}

// Restore is Put for an object that keeps its resource version, from which the server goes on counting. It panics if
// that is not a number, or lower than that of any object stored before.
func (s *Server) Restore(r Resource, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := metadataOf(object)["resourceVersion"].(string)
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < s.version && len(s.history) > 0 {
		panic(fmt.Sprintf("memapi: an object cannot be restored with version %q at version %d", text, s.version))
	}
	s.version = version - 1
	s.put(r, object)
}

func (s *Server) put(r Resource, object map[string]any) {
	after := encoded(object)
	delete(after, "apiVersion")
	delete(after, "kind")
	metadata := metadataOf(after)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	t := s.target(r, namespace, name)
	before := s.objects[r.groupResource()][t.key()]
	if before != nil && metadataOf(before)["uid"] != metadata["uid"] {
		s.discard(t, before)
		before = nil
	}
	metadata["resourceVersion"] = s.next()
	s.keep(t, before, after)
}

// encoded is the object as it comes over the wire.
func encoded(object map[string]any) map[string]any {
	data, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("memapi: an object cannot be encoded: %v", err))
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(fmt.Sprintf("memapi: an object cannot be decoded: %v", err))
	}
	return out
}

// Edit changes an object as somebody else would who asks for no version, past admission and validation: it gets a new
// resource version if it differs afterwards, a new generation if it is not the metadata alone, and is gone if it is
// being deleted and nothing holds it any more. It tells whether there is such an object. The change is made with the
// server locked, so it must not ask it for anything.
func (s *Server) Edit(r Resource, namespace, name string, change func(object map[string]any)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.edit(s.target(r, namespace, name), change)
}

func (s *Server) edit(t target, change func(object map[string]any)) bool {
	before, ok := s.objects[t.groupResource()][t.key()]
	if !ok {
		return false
	}
	after := cloned(before)
	change(after)
	after = encoded(after)
	metadata := metadataOf(after)
	tidy(metadata)
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return true
	case s.released(t, after):
		s.discard(t, before)
		return true
	case !t.Plain && t.specified(before, after):
		metadata["generation"] = generation(before) + 1
	}
	metadata["resourceVersion"] = s.next()
	s.keep(t, before, after)
	return true
}

// Delete asks for the deletion of an object as somebody else would: it goes at once unless finalizers hold it. It tells
// whether there is such an object.
func (s *Server) Delete(r Resource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.delete(s.target(r, namespace, name), &metav1.DeleteOptions{})
	return err == nil
}

// Discard ends an object at once, whatever holds it. It tells whether there was one.
func (s *Server) Discard(r Resource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.target(r, namespace, name)
	before, ok := s.objects[r.groupResource()][t.key()]
	if ok {
		s.discard(t, before)
	}
	return ok
}

// Object is what is stored under the name, with apiVersion and kind; nil if there is nothing.
func (s *Server) Object(r Resource, namespace, name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, err := s.get(s.target(r, namespace, name), "")
	if err != nil {
		return nil
	}
	return object
}

// ObjectsOf are those of one resource that are stored, with apiVersion and kind, in the order of their names.
func (s *Server) ObjectsOf(r Resource) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.target(r, "", "")
	var all []map[string]any
	for _, object := range s.matching(t, interest{labels: labels.Everything(), fields: fields.Everything()}) {
		all = append(all, t.shown(object))
	}
	return all
}

// Objects are all that are stored, with apiVersion and kind, in the order of their resources and names. Kubernetes
// events are not among them.
func (s *Server) Objects() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []map[string]any
	for _, t := range s.everything() {
		if object, err := s.get(t, ""); err == nil {
			all = append(all, object)
		}
	}
	return all
}
