package kind

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/controls"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// HasControls reports whether the object has an annotation that controls its handling. Few objects have one, so callers
// skip all other work for most of them.
func (k *HandledKind) HasControls(body map[string]any) bool {
	for key := range annotationsOf(body) {
		if keys.IsControl(k.Prefix, key) {
			return true
		}
	}
	return false
}

// PauseOf returns the pause that the annotation of the object requests. The error is that of an unknown value, which
// does not pause the object.
func (k *HandledKind) PauseOf(body map[string]any) (controls.Pause, error) {
	if !k.HasControls(body) {
		return controls.NotPaused, nil
	}
	key := keys.ControlKey(k.Prefix, body, keys.Paused)
	pause, err := controls.ParsePause(annotationsOf(body)[key])
	if err != nil {
		return pause, fmt.Errorf("annotation %s: %w", key, err)
	}
	return pause, nil
}

// IsPausedIn reports whether the object is paused, given its state in an event. It decodes only objects with the
// annotation.
func (k *HandledKind) IsPausedIn(o *jsontext.LazyObject, deleting bool) bool {
	key := k.Prefix + "/" + keys.Paused
	// A ReplicaSet has another key if a Deployment owns it.
	isSet := k.Resource != nil && k.Resource.Kind == "ReplicaSet"
	if !isSet && !o.IsDecoded() && o.StringAt("metadata", "annotations", key) == "" {
		return false
	}
	// An object that cannot be decoded is not paused: its handlers report the error. So does the pass over the object
	// for an unknown value.
	body, _ := o.Value()
	pause, _ := k.PauseOf(body)
	return pause.Covers(deleting)
}

// annotationsOf returns the annotations of a body, which can be malformed.
func annotationsOf(body map[string]any) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}
