package configurations

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mark is the annotation that an operator sets in the object with its entries.
type mark struct {
	// Writer is the identity of the process that wrote last. It is empty if that process has removed its entries.
	Writer string `json:"writer,omitempty"`
	// Started is when that process started.
	Started time.Time `json:"started,omitzero"`
	// Leaving is true if that process exits and soon removes its entries, unless another process of the operator takes
	// over.
	Leaving bool `json:"leaving,omitempty"`
	// Entries are the names of the entries of the operator.
	Entries []string `json:"entries,omitempty"`
}

// document is one object with the entries of several operators.
type document struct {
	object *unstructured.Unstructured
	// annotation is the key of the mark.
	annotation string
}

func newDocument(kind schema.GroupVersionKind, name, annotation string) document {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	return document{object, annotation}
}

// mark returns the mark of the operator. An unreadable mark counts as an empty one.
func (d document) mark() mark {
	var m mark
	if json.Unmarshal([]byte(d.object.GetAnnotations()[d.annotation]), &m) != nil {
		return mark{}
	}
	return m
}

// isMarked reports whether the operator has a mark in the object.
func (d document) isMarked() bool {
	_, marked := d.object.GetAnnotations()[d.annotation]
	return marked
}

func (d document) entries() []any {
	entries, _ := d.object.Object["webhooks"].([]any)
	return entries
}

// ownNames returns the names of the operator's entries in the object: those in its mark, and those of the wanted
// entries, which another client may have written.
func (d document) ownNames(wanted []any) (names []string) {
	own := append(d.mark().Entries, namesOf(wanted)...)
	return slices.DeleteFunc(namesOf(d.entries()), func(name string) bool { return !slices.Contains(own, name) })
}

// declare sets the entries and the mark, which the object does not have yet.
func (d document) declare(entries []any, m mark) error {
	if m.Entries = namesOf(entries); len(entries) > 0 {
		d.object.Object["webhooks"] = entries
	}
	if m.Writer == "" && len(entries) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding the annotation %s: %w", d.annotation, err)
	}
	d.object.SetAnnotations(map[string]string{d.annotation: string(text)})
	return nil
}

func bundleOf(entry any) any {
	fields, _ := entry.(map[string]any)
	client, _ := fields["clientConfig"].(map[string]any)
	return client["caBundle"]
}

func namesOf(entries []any) (names []string) {
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		name, _ := fields["name"].(string)
		names = append(names, name)
	}
	return names
}
