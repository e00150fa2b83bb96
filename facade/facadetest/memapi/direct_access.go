package memapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
)

// Put stores an object as it is, with its uid, finalizers and deletionTimestamp, without any checks. Only its resource
// version is new; [Server.Load] keeps it. An object of the same name with another uid is removed first.
func (s *Server) Put(r Resource, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after := encodedCopy(object)
	delete(after, "apiVersion")
	delete(after, "kind")
	metadata := metadataOf(after)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	t := s.newTarget(r, namespace, name)
	before := s.objects[r.groupResource()][t.objectKey()]
	// Watches must see a deletion and an addition, not a change of the uid.
	if before != nil && metadataOf(before)["uid"] != metadata["uid"] {
		s.removeObject(t, before)
		before = nil
	}
	metadata["resourceVersion"] = s.nextVersion()
	s.storeObject(t, before, after)
}

// encodedCopy returns the object as a client would receive it: encoded to JSON and decoded, so that its numbers and
// lists have the usual types. The result is a deep copy.
func encodedCopy(object map[string]any) map[string]any {
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

// Edit changes an object like another client that does not send a resource version, but without admission and
// validation. The object gets a new resource version if it has changed, and a new generation if more than its metadata
// has. It is removed if it is being deleted and no finalizers remain.
// Edit reports whether the object exists. The server is locked while change runs, so change must not call the server.
func (s *Server) Edit(r Resource, namespace, name string, change func(object map[string]any)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.editObject(s.newTarget(r, namespace, name), change)
}

// editObject is [Server.Edit] for callers that hold the lock.
func (s *Server) editObject(t target, change func(object map[string]any)) bool {
	before, ok := s.objects[t.groupResource()][t.objectKey()]
	if !ok {
		return false
	}
	after := cloneObject(before)
	change(after)
	// The encoding normalizes values that the function has set, such as int or []string.
	after = encodedCopy(after)
	metadata := metadataOf(after)
	dropEmptyMetadata(metadata)
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return true
	// Removing the last finalizer of an object in deletion completes the deletion.
	case s.isReleased(t, after):
		s.removeObject(t, before)
		return true
	case !t.Plain && t.changesGeneration(before, after):
		metadata["generation"] = generationOf(before) + 1
	}
	metadata["resourceVersion"] = s.nextVersion()
	s.storeObject(t, before, after)
	return true
}

// Delete deletes an object like another client: at once, unless it has finalizers. It reports whether the object
// exists.
func (s *Server) Delete(r Resource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.deleteObject(s.newTarget(r, namespace, name), &metav1.DeleteOptions{})
	return err == nil
}

// Discard removes an object at once, even if it has finalizers. It reports whether the object existed.
func (s *Server) Discard(r Resource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.newTarget(r, namespace, name)
	before, ok := s.objects[r.groupResource()][t.objectKey()]
	if ok {
		s.removeObject(t, before)
	}
	return ok
}

// Object returns a stored object with apiVersion and kind, or nil if it does not exist.
func (s *Server) Object(r Resource, namespace, name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, err := s.getObject(s.newTarget(r, namespace, name), "")
	if err != nil {
		return nil
	}
	return object
}

// ObjectsOf returns the stored objects of a resource with apiVersion and kind, in the order of their namespaces and
// names.
func (s *Server) ObjectsOf(r Resource) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.newTarget(r, "", "")
	var all []map[string]any
	// An empty selection selects everything.
	for _, object := range s.matchingObjects(t,
		objectFilter{labels: labels.Everything(), fields: fields.Everything()}) {
		all = append(all, t.servedObject(object))
	}
	return all
}

// Objects returns all stored objects except for Kubernetes events, with apiVersion and kind, in the order of their
// resources, namespaces and names.
func (s *Server) Objects() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []map[string]any
	for _, t := range s.allButEvents() {
		if object, err := s.getObject(t, ""); err == nil {
			all = append(all, object)
		}
	}
	return all
}
