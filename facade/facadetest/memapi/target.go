package memapi

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi/internal/schemas"
)

// target describes the object or collection of a request, with the options of the request.
type target struct {
	Resource
	namespace, name, subresource string
	// manager is the field manager of the request.
	manager string
	// isMetadataOnly requests the metadata of objects only.
	isMetadataOnly bool
	// managedFields holds the managedFields that a server-side apply has computed; nil for other requests.
	managedFields any
	// schema is the schema of the requested version, storage that of the stored one. Both may be nil.
	schema, storageSchema *schemas.Version
	// storageVersion is the name of the stored version, and convert the conversion webhook, if the definition has one.
	storageVersion string
	convert        func(object map[string]any, to string) (map[string]any, error)
	// patchResult is the complete result of a patch. It appears in the error for unknown fields.
	patchResult []byte
	// fieldValidation is the handling of unknown fields; see metav1.FieldValidationStrict.
	fieldValidation string
	// isDryRun is set for a dry run, which stores nothing.
	isDryRun bool
	notes    *notes
	// reviewContext is the context of a client's request. It is nil for the server's own changes, which skip reviews.
	reviewContext context.Context //nolint:containedctx // a target is a part of one request
	// reviewedKind is the kind of the reviewed objects, if it differs from that of the resource.
	reviewedKind schema.GroupVersionKind
}

// objectKey returns the key of the object among those of its resource.
func (t target) objectKey() string { return t.namespace + "/" + t.name }

// notes collects the warnings and the failure of a request, which are reported beside its result. All copies of a
// target share them.
type notes struct {
	warnings []string
	// failure is the error of converting a stored object. It replaces the result of the request.
	failure *apierrors.StatusError
}

// eventsGroup is the newer API of Kubernetes events. Both APIs serve the same objects, with different field names.
const eventsGroup = "events.k8s.io"

// cloneObject returns a deep copy. Stored objects are never changed in place: the history and running watches share
// them.
func cloneObject(object map[string]any) map[string]any { return runtime.DeepCopyJSON(object) }

// metadataOf returns the metadata of the object, not a copy. It adds an empty map if the object does not have any.
func metadataOf(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return metadata
}

// hasFinalizer reports whether the object has the finalizer.
func hasFinalizer(object map[string]any, finalizer string) bool {
	finalizers, _ := metadataOf(object)["finalizers"].([]any)
	return slices.Contains(finalizers, any(finalizer))
}

// isBeingDeleted reports whether the object has a deletionTimestamp.
func isBeingDeleted(object map[string]any) bool {
	return metadataOf(object)["deletionTimestamp"] != nil
}

// keepFields gives the fields of some metadata the values of other ones, or removes those that are missing there.
func keepFields(metadata, from map[string]any, names ...string) {
	for _, name := range names {
		delete(metadata, name)
		if value := from[name]; value != nil {
			metadata[name] = value
		}
	}
}
