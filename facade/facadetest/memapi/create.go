package memapi

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
)

// parseObject decodes the body of a write and checks its kind and version, as the server's decoder does. The result
// does not have an apiVersion and a kind.
func (t target) parseObject(data []byte) (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is not valid: %v", err))
	}
	// The client need not send a kind, but a wrong one is an error.
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
	// Unknown fields are checked in the original data, because decoding has merged duplicates already.
	if err := t.checkUnknownFields(data); err != nil {
		return nil, err
	}
	// The Go types of these built-in kinds do not have a status, so the real server drops it.
	if t.Plain && !t.StatusSubresource {
		if object["status"] != nil && t.fieldValidation == "" { // otherwise reported above
			t.notes.warnings = append(t.notes.warnings, `unknown field "status"`)
		}
		delete(object, "status")
	}
	return object, t.applySchema(object)
}

// createObject stores a new object. The order of its checks is that of the real server, because a request with several
// mistakes gets the error of the first one.
func (s *Server) createObject(t target, data []byte) (map[string]any, error) {
	object, err := t.parseObject(data)
	if err != nil {
		return nil, err
	}
	metadata := metadataOf(object)
	// "0" and no version are both accepted, as in the real server.
	if version, _ := metadata["resourceVersion"].(string); version != "" && version != "0" {
		return nil, internalError(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if given, _ := metadata["namespace"].(string); given != "" && given != t.namespace {
		return nil, apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request",
		)
	}
	// Clients cannot set these fields: the server ignores them in a creation.
	for _, own := range []string{
		"deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "managedFields", "selfLink",
	} {
		delete(metadata, own)
	}
	if t.managedFields != nil {
		metadata["managedFields"] = t.managedFields
	}
	if t.namespace != "" {
		metadata["namespace"] = t.namespace
	}
	// The name must be known before the target is used as a key.
	s.setGeneratedName(metadata)
	t.name, _ = metadata["name"].(string)
	// A status can only be written through the subresource.
	if t.StatusSubresource {
		delete(object, "status")
	}
	s.setIdentity(t, metadata)
	// Admission must not run for an object whose namespace does not exist.
	if err := s.admitNamespace(t); err != nil {
		return nil, err
	}
	// A namespace is completed before webhooks see it.
	s.beginNamespace(t, object)
	if err := s.admitObject(t, object, nil); err != nil {
		return nil, err
	}
	// Like the real server, this checks for an existing object after admission, so webhooks also see creations that
	// fail.
	if _, exists := s.objects[t.groupResource()][t.objectKey()]; exists {
		return nil, apierrors.NewAlreadyExists(t.qualifiedName(), t.name)
	}
	// The object was validated; from here on, it changes into its stored form.
	t.pruneStatus(object)
	t.setDefinitionStatus(object)
	if err := t.convertToStored(object); err != nil {
		return nil, err
	}
	metadata = metadataOf(object)
	s.setResourceVersion(t, metadata)
	s.storeObject(t, nil, object)
	return t.servedObject(object), nil
}

// maxPrefixLength is the length to which a generateName is cut. With the five characters of the suffix, the name is a
// DNS label of 63 characters.
const maxPrefixLength = 58

// setGeneratedName sets the name of an object that only has a generateName. The suffix is a counter, not random, so
// that tests are repeatable.
func (s *Server) setGeneratedName(metadata map[string]any) {
	prefix, _ := metadata["generateName"].(string)
	if name, _ := metadata["name"].(string); name == "" && prefix != "" {
		metadata["name"] = fmt.Sprintf("%s%05d", prefix[:min(len(prefix), maxPrefixLength)], s.nextNumber())
	}
}
