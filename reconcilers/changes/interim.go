package changes

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// Interim is where the essence that the first successful handler of a cause saw is kept until the cause ends. It stays
// beyond that as long as not all handlers have seen the one that is stored as last handled. Kopf does not know the
// annotation, and takes it for one of its own that is to be ignored: it ends causes without removing it. So what it is
// valid beside is kept in it.
type Interim struct {
	diffbase.Annotations
}

// NewInterim keeps it under the operator's annotation prefix.
func NewInterim(prefix string) Interim {
	return Interim{diffbase.Annotations{Prefix: prefix, Key: keys.Handling, WithoutV1: true}}
}

func (i Interim) keys(body map[string]any) []string {
	return keys.Names(i.Prefix, keys.Mark(body, i.Key), false)
}

// Fetch reads the essence alone.
func (i Interim) Fetch(body map[string]any) (diffbase.Essence, error) {
	essence, _, err := i.read(body)
	return essence, err
}

// read gives the essence, and what it is valid beside; that is nil if it was stored without.
func (i Interim) read(body map[string]any) (essence diffbase.Essence, beside *binding, err error) {
	essence, err = i.Annotations.Fetch(body)
	if stored, bound := essence[besideKey]; err == nil && bound {
		beside = parseBinding(stored)
	}
	delete(essence, besideKey)
	return essence, beside, err
}

// Purge adds its removal to the merge-patch, if the object has it.
func (i Interim) Purge(patch *patching.Patch, body map[string]any) {
	annotations := annotationsOf(body)
	for _, key := range i.keys(body) {
		if annotations[key] != nil {
			patch.SetIn([]string{"metadata", "annotations", key}, nil)
		}
	}
}

func annotationsOf(body map[string]any) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}
