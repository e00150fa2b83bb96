package changes

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// Interim is where the essence that the first successful handler of a cause saw is kept until the cause ends. It stays
// beyond that as long as not all handlers have seen the one that is stored as last handled.
// Kopf does not know the annotation, and takes it for one of its own that is to be ignored: it ends causes without removing it.
// So what it is valid beside is kept in it.
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
	essence, err := i.Annotations.Fetch(body)
	delete(essence, besideKey)
	return essence, err
}

// beside reads what the essence is valid beside; nil if it was stored without that.
func (i Interim) beside(body map[string]any) (*binding, error) {
	essence, err := i.Annotations.Fetch(body)
	stored, bound := essence[besideKey]
	if err != nil || !bound {
		return nil, err
	}
	return parseBinding(stored), nil
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
