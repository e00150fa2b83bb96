package changes_test

import "strconv"

// object returns a new object as a user creates it.

func object() map[string]any {
	return map[string]any{
		"apiVersion": "example.org/v1", "kind": "Example",
		"metadata": map[string]any{"namespace": "ns", "name": "obj", "uid": "uid-1", "generation": int64(1)},
		"spec":     map[string]any{"field": "one"},
	}
}

// create stores the object, replacing any object with the same name.
func (s *server) create(body map[string]any) {
	s.api.Discard(s.resource(), "ns", "obj")
	s.api.Put(s.resource(), body)
}

// edit changes the object like any other client, without the hooks of the test.
func (s *server) edit(change func(body map[string]any)) {
	s.api.Edit(s.resource(), "ns", "obj", change)
}

// set stores a value at a path of keys.
func (s *server) set(value any, path ...string) {
	s.edit(func(body map[string]any) { put(body, value, path...) })
}

// delete marks the object as deleted, or removes it if it has no finalizer.
func (s *server) delete() { s.api.Delete(s.resource(), "ns", "obj") }

// stored returns the present state of the object, or nil if it does not exist.
func (s *server) stored() map[string]any { return s.api.Object(s.resource(), "ns", "obj") }

func (s *server) at(path ...string) any { return at(s.stored(), path...) }

// drainWrites returns the writes since the last call.
func (s *server) drainWrites() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := s.writes
	s.writes = nil
	return writes
}

// owner returns an item of metadata.ownerReferences, a list outside of the essence.
func owner(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name}
}

func versionOf(body map[string]any) int {
	text, _ := at(body, "metadata", "resourceVersion").(string)
	number, _ := strconv.Atoi(text)
	return number
}

// put sets a value in a body, or removes it if the value is nil.
func put(body map[string]any, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		next, ok := body[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			body[key] = next
		}
		body = next
	}
	if value == nil {
		delete(body, path[len(path)-1])
		return
	}
	body[path[len(path)-1]] = value
}
