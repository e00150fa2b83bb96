package changes_test

import "strconv"

// What others do to the object: users, controllers, whoever.

func object() map[string]any {
	return map[string]any{
		"apiVersion": "example.org/v1", "kind": "Example",
		"metadata": map[string]any{"namespace": "ns", "name": "obj", "uid": "uid-1", "generation": int64(1)},
		"spec":     map[string]any{"field": "one"},
	}
}

// create puts the object there, or another one of the same name.
func (s *server) create(body map[string]any) {
	s.api.Discard(s.resource(), "ns", "obj")
	s.api.Put(s.resource(), body)
}

// edit changes the object as any client could, past all guards.
func (s *server) edit(change func(body map[string]any)) {
	s.api.Edit(s.resource(), "ns", "obj", change)
}

// set puts a value to a path of keys.
func (s *server) set(value any, path ...string) {
	s.edit(func(body map[string]any) { put(body, value, path...) })
}

// delete marks the object, or ends it at once if nothing holds it.
func (s *server) delete() { s.api.Delete(s.resource(), "ns", "obj") }

// stored is the object as it is now; nil if there is none.
func (s *server) stored() map[string]any { return s.api.Object(s.resource(), "ns", "obj") }

func (s *server) at(path ...string) any { return at(s.stored(), path...) }

// drainWrites gives the writes since it was asked last.
func (s *server) drainWrites() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := s.writes
	s.writes = nil
	return writes
}

// owner is an item of metadata.ownerReferences: a list that is no part of the essence.
func owner(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name}
}

func versionOf(body map[string]any) int {
	text, _ := at(body, "metadata", "resourceVersion").(string)
	number, _ := strconv.Atoi(text)
	return number
}

// put sets a value in a body; nil removes it.
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
