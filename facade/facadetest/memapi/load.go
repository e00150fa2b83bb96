package memapi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Load stores objects as a dump has them, with their uids, resource versions and statuses, past admission. An object
// without a uid is created as by a client, but without asking reviewers. Definitions are served first. The history is
// forgotten: watches from before end with the status 410. It is an error if the kind of an object is not served;
// nothing is stored then, except for definitions.
func (s *Server) Load(objects ...map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		s.reserve(object)
	}
	isDefinition := func(object map[string]any) bool { return object["kind"] == definitionsResource.Kind }
	for _, object := range objects {
		if isDefinition(object) {
			if err := s.load(definitionsResource, object); err != nil {
				return err
			}
		}
	}
	var found []Resource
	for _, object := range objects {
		r, ok := s.resourceOf(object)
		if !ok {
			return fmt.Errorf("%v of %v is not served", object["kind"], object["apiVersion"])
		}
		found = append(found, r)
	}
	for i, object := range objects {
		if isDefinition(object) {
			continue
		}
		if err := s.load(found[i], object); err != nil {
			return err
		}
	}
	s.history, s.compacted = nil, s.version
	return nil
}

// resourceOf finds the resource of an object by its apiVersion and kind.
func (s *Server) resourceOf(object map[string]any) (Resource, bool) {
	version, _ := object["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return Resource{}, false
	}
	for _, r := range s.resources {
		if r.groupVersion() == gv && r.Kind == object["kind"] {
			return r, true
		}
	}
	return Resource{}, false
}

// uidPrefix is that of the uids that this server gives.
const uidPrefix = "00000000-0000-4000-8000-"

// reserve has later objects get other uids than a loaded one.
func (s *Server) reserve(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	if number, err := strconv.Atoi(strings.TrimPrefix(uid, uidPrefix)); err == nil {
		s.uids = max(s.uids, number)
	}
}

func (s *Server) load(r Resource, given map[string]any) error {
	object := encoded(given)
	metadata := metadataOf(object)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if r.Namespaced && namespace == "" {
		namespace = "default" // as in a manifest
		metadata["namespace"] = namespace
	}
	if name == "" || r.Namespaced != (namespace != "") {
		return fmt.Errorf("the object %q of %s has no name, or its namespace %q is wrong", name, r.Plural, namespace)
	}
	t := s.target(r, namespace, name)
	var err error
	if uid, _ := metadata["uid"].(string); uid == "" {
		var body []byte
		if body, err = json.Marshal(object); err == nil {
			_, err = s.create(t, body)
		}
	} else {
		err = s.restore(t, object)
	}
	if err != nil {
		return fmt.Errorf("the object %s of %s: %w", name, r.Plural, err)
	}
	return nil
}

// restore stores an object as it was saved.
func (s *Server) restore(t target, object map[string]any) error {
	delete(object, "apiVersion")
	delete(object, "kind")
	if problems, err := s.understand(t, object, nil); err != nil || len(problems) > 0 {
		return errors.Join(err, problems.ToAggregate())
	}
	if text, _ := metadataOf(object)["resourceVersion"].(string); text == "" {
		metadataOf(object)["resourceVersion"] = s.next()
	} else if version, err := parseVersion(text); err != nil {
		return err
	} else {
		s.version = max(s.version, version)
	}
	t.establish(object)
	if err := t.store(object); err != nil {
		return err
	}
	before := s.objects[t.groupResource()][t.key()]
	s.objects[t.groupResource()][t.key()] = object
	s.define(t, before, object)
	s.keepNamespaces(t, object, object)
	return nil
}
