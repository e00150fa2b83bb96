package memapi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
)

// Load stores objects from a dump with their uids, resource versions and statuses, without admission. An object without
// a uid and a resource version is created as by a client, but without reviewers. Definitions are loaded first.
// The history is dropped: earlier watches end with the status 410. If the kind of an object is not served, Load returns
// an error and stores nothing but the definitions.
func (s *Server) Load(objects ...map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Uids are reserved first, so that an object created below cannot get the uid of a later one.
	for _, object := range objects {
		s.reserveUID(object)
	}
	isDefinition := func(object map[string]any) bool { return object["kind"] == definitionsResource.Kind }
	for _, object := range objects {
		// Definitions must be served before their objects are resolved.
		if isDefinition(object) {
			if err := s.loadObject(object); err != nil {
				return err
			}
		}
	}
	// All kinds are resolved before the first object is stored, so that an unknown kind does not leave half of a dump.
	for _, object := range objects {
		if _, err := s.resourceOf(object); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if isDefinition(object) {
			continue
		}
		if err := s.loadObject(object); err != nil {
			return err
		}
	}
	// Watches from before cannot continue: the loaded versions do not belong to their history.
	s.history, s.compactedVersion = nil, s.version
	return nil
}

// resourceOf returns the resource of an object by its apiVersion and kind.
func (s *Server) resourceOf(object map[string]any) (Resource, error) {
	for _, r := range s.resources {
		if r.groupVersion().String() == object["apiVersion"] && r.Kind == object["kind"] {
			return r, nil
		}
	}
	return Resource{}, fmt.Errorf("%v of %v is not served", object["kind"], object["apiVersion"])
}

// uidMiddle is the middle of the uids that this server assigns. The last part is a counter. The first part follows from
// it, and makes the hashes of the uids differ as much as those of random uids: a shardSelector divides objects by them.
const uidMiddle = "-0000-4000-8000-"

// uidFor returns the uid with this number.
func uidFor(number int) string {
	const factor = 2654435761                                                   // of Knuth's multiplicative hash
	return fmt.Sprintf("%08x%s%012d", uint32(number)*factor, uidMiddle, number) //nolint:gosec // only for its bits
}

// reserveUID makes sure that new objects do not get the uid of a loaded one.
func (s *Server) reserveUID(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	_, counter, _ := strings.Cut(uid, uidMiddle)
	if number, err := strconv.Atoi(counter); err == nil {
		s.lastNumber = max(s.lastNumber, number)
	}
}

// loadObject stores one object in the namespace of its metadata.
func (s *Server) loadObject(given map[string]any) error {
	object := encodedCopy(given)
	r, err := s.resourceOf(object)
	if err != nil {
		return err
	}
	metadata := metadataOf(object)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if r.Namespaced && namespace == "" {
		namespace = "default" // the default of kubectl for manifests
		metadata["namespace"] = namespace
	}
	if name == "" || r.Namespaced != (namespace != "") {
		return fmt.Errorf("the object %q of %s has no name, or its namespace %q is wrong", name, r.Plural, namespace)
	}
	t := s.newTarget(r, namespace, name)
	uid, _ := metadata["uid"].(string)
	if version, _ := metadata["resourceVersion"].(string); uid == "" && version == "" {
		// The usual creation applies defaults and validation.
		var body []byte
		if body, err = json.Marshal(object); err == nil {
			_, err = s.createObject(t, body)
		}
	} else {
		err = s.restoreObject(t, object)
	}
	if err != nil {
		return fmt.Errorf("the object %s of %s: %w", name, r.Plural, err)
	}
	return nil
}

// restoreObject stores an object with its uid and resource version. It does not record the change; the caller drops the
// history.
func (s *Server) restoreObject(t target, object map[string]any) error {
	delete(object, "apiVersion")
	delete(object, "kind")
	if problems, err := s.checkDefinition(t, object, nil); err != nil || len(problems) > 0 {
		return errors.Join(err, problems.ToAggregate())
	}
	// Versions of a dump are kept. An object without a version gets a new one.
	if text, _ := metadataOf(object)["resourceVersion"].(string); text == "" {
		metadataOf(object)["resourceVersion"] = s.nextVersion()
	} else if version, err := parseVersion(text); err != nil {
		return err
	} else {
		// The next version of the server must be higher than that of every loaded object.
		s.version = max(s.version, version)
	}
	t.setDefinitionStatus(object)
	if err := t.convertToStored(object); err != nil {
		return err
	}
	// The object may replace one that exists.
	before := s.objects[t.groupResource()][t.objectKey()]
	s.objects[t.groupResource()][t.objectKey()] = object
	s.updateServedKinds(t, before, object)
	s.keepNamespaces(t, object, object)
	return nil
}
