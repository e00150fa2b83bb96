package memapi

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

func cloned(object map[string]any) map[string]any { return runtime.DeepCopyJSON(object) }

// metadataOf is the object's own; it is made if there is none.
func metadataOf(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return metadata
}

// parse reads an object as the server's decoder does.
func (t target) parse(data []byte) (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is not valid: %v", err))
	}
	if kind := object["kind"]; kind != nil && kind != t.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%v is not a %s", kind, t.Kind))
	}
	if version := object["apiVersion"]; version != nil && version != t.groupVersion().String() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%v) does not match the expected API version (%s)", version, t.groupVersion(),
		))
	}
	delete(object, "apiVersion")
	delete(object, "kind")
	if err := t.decodable(data); err != nil {
		return nil, err
	}
	if t.Plain && !t.StatusSubresource {
		if object["status"] != nil && t.validation == "" { // else reported above
			t.notes.warnings = append(t.notes.warnings, `unknown field "status"`)
		}
		delete(object, "status") // the types that are built in know what they have
	}
	return object, t.coerce(object)
}

func (s *Server) create(t target, data []byte) (map[string]any, error) {
	object, err := t.parse(data)
	if err != nil {
		return nil, err
	}
	metadata := metadataOf(object)
	if version, _ := metadata["resourceVersion"].(string); version != "" && version != "0" {
		return nil, internal(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if given, _ := metadata["namespace"].(string); given != "" && given != t.namespace {
		return nil, apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request",
		)
	}
	for _, own := range []string{
		"deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "managedFields", "selfLink",
	} {
		delete(metadata, own)
	}
	if t.managed != nil {
		metadata["managedFields"] = t.managed
	}
	if t.namespace != "" {
		metadata["namespace"] = t.namespace
	}
	s.name(t, metadata)
	t.name, _ = metadata["name"].(string)
	if t.StatusSubresource {
		delete(object, "status")
	}
	s.identify(t, metadata)
	if err := s.admitNamespace(t); err != nil {
		return nil, err
	}
	s.beginNamespace(t, object)
	if err := s.admit(t, object, nil); err != nil {
		return nil, err
	}
	if _, exists := s.objects[t.groupResource()][t.key()]; exists {
		return nil, apierrors.NewAlreadyExists(t.qualified(), t.name)
	}
	t.prune(object)
	t.establish(object)
	if err := t.store(object); err != nil {
		return nil, err
	}
	metadata = metadataOf(object)
	s.stamp(t, metadata)
	s.keep(t, nil, object)
	return t.shown(object), nil
}

// longestPrefix is how much of a generateName is in the name: with the five characters behind it, that is a DNS label.
const longestPrefix = 58

// name makes one of what the object is to be called after.
func (s *Server) name(t target, metadata map[string]any) {
	prefix, _ := metadata["generateName"].(string)
	if name, _ := metadata["name"].(string); name == "" && prefix != "" {
		metadata["name"] = fmt.Sprintf("%s%05d", prefix[:min(len(prefix), longestPrefix)], s.number(t))
	}
}

func (s *Server) identify(t target, metadata map[string]any) {
	metadata["uid"] = fmt.Sprintf("%s%012d", uidPrefix, s.number(t))
	metadata["creationTimestamp"] = timestamp()
	delete(metadata, "generation")
	if !t.Plain {
		metadata["generation"] = int64(1)
	}
}

// stamp gives the object a new version, unless it is not to be stored.
func (s *Server) stamp(t target, metadata map[string]any) {
	if !t.dry {
		metadata["resourceVersion"] = s.next()
	}
}

// keep stores what is there now, and tells those who watch.
func (s *Server) keep(t target, before, after map[string]any) {
	if t.dry {
		return
	}
	s.objects[t.groupResource()][t.key()] = after
	s.record(t, before, after, nil)
	s.define(t, before, after)
	s.noticed(before, after)
	s.keepNamespaces(t, before, after)
}

// discard removes the object; last is its state as it is told.
func (s *Server) discard(t target, before map[string]any) {
	if t.dry {
		return
	}
	delete(s.objects[t.groupResource()], t.key())
	last := cloned(before)
	metadataOf(last)["resourceVersion"] = s.next()
	s.record(t, before, nil, last)
	s.define(t, before, nil)
	s.noticed(before, nil)
	s.keepNamespaces(t, before, nil)
}

// prune drops what the schema of the status does not have.
func (t target) prune(object map[string]any) {
	status, ok := object["status"].(map[string]any)
	if !ok || t.StatusFields == nil {
		return
	}
	for key := range status {
		known := false
		for _, field := range t.StatusFields {
			known = known || field == key
		}
		if !known {
			delete(status, key)
		}
	}
}
