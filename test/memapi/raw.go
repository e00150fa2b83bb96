package memapi

// Put stores an object as it is, whatever the rules: with its uid, its finalizers and a deletion under way. Only its
// resource version is new.
func (s *Server) Put(r Resource, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after := cloned(object)
	delete(after, "apiVersion")
	delete(after, "kind")
	metadata := metadataOf(after)
	t := target{Resource: r}
	t.namespace, _ = metadata["namespace"].(string)
	t.name, _ = metadata["name"].(string)
	metadata["resourceVersion"] = s.next()
	s.keep(t, s.objects[r.groupResource()][t.key()], after)
}

// Object is what is stored under the name; nil if there is nothing.
func (s *Server) Object(r Resource, namespace, name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, err := s.get(target{Resource: r, namespace: namespace, name: name})
	if err != nil {
		return nil
	}
	return object
}
