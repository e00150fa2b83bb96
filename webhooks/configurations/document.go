package configurations

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mark is the annotation of an operator in an object with its entries. It coordinates the operator's processes: the
// youngest one writes, and an exiting one waits for a successor.
type mark struct {
	// LastWriter is the identity of the process that wrote last. It is empty if that process has removed its entries.
	LastWriter string `json:"writer,omitempty"`
	// StartTime is the start time of that process.
	StartTime time.Time `json:"started,omitzero"`
	// IsExiting is true if that process is exiting. It soon removes its entries, unless another process of the operator
	// takes over.
	IsExiting bool `json:"leaving,omitempty"`
	// Entries are the names of the operator's entries.
	Entries []string `json:"entries,omitempty"`
}

// document is one object with the entries of several operators.
type document struct {
	object *unstructured.Unstructured
	// annotation is the key of the mark.
	annotation string
}

// newDocument returns an object without entries. It is unstructured, so that fields of newer API versions are
// preserved.
func newDocument(kind schema.GroupVersionKind, name, annotation string) document {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	return document{object, annotation}
}

// readMark returns the operator's mark. An unreadable mark counts as an empty one, which is due to be overwritten.
func (d document) readMark() mark {
	var m mark
	if json.Unmarshal([]byte(d.object.GetAnnotations()[d.annotation]), &m) != nil {
		return mark{}
	}
	return m
}

// hasMark reports whether the object contains a mark of the operator.
func (d document) hasMark() bool {
	_, marked := d.object.GetAnnotations()[d.annotation]
	return marked
}

// allEntries returns the entries of all operators.
func (d document) allEntries() []any {
	entries, _ := d.object.Object["webhooks"].([]any)
	return entries
}

// ownEntryNames returns the names of the operator's entries in the object: those in its mark, and those of the wanted
// entries, because another client may have written entries of the same names.
func (d document) ownEntryNames(wanted []any) (names []string) {
	own := append(d.readMark().Entries, namesOfEntries(wanted)...)
	return slices.DeleteFunc(namesOfEntries(d.allEntries()),
		func(name string) bool { return !slices.Contains(own, name) })
}

// declareEntries sets the entries and the mark in an object for server-side apply. The object must have neither.
func (d document) declareEntries(entries []any, m mark) error {
	if m.Entries = namesOfEntries(entries); len(entries) > 0 {
		d.object.Object["webhooks"] = entries
	}
	// Applying nothing removes the entries and the mark, which the operator owns.
	if m.LastWriter == "" && len(entries) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding the annotation %s: %w", d.annotation, err)
	}
	d.object.SetAnnotations(map[string]string{d.annotation: string(text)})
	return nil
}

// bundleOfEntry returns the CA bundle of an entry, in base64 as in JSON.
func bundleOfEntry(entry any) any {
	fields, _ := entry.(map[string]any)
	client, _ := fields["clientConfig"].(map[string]any)
	return client["caBundle"]
}

// namesOfEntries returns the names of entries.
func namesOfEntries(entries []any) (names []string) {
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		name, _ := fields["name"].(string)
		names = append(names, name)
	}
	return names
}
