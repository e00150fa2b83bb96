package configurations

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mark is what an operator says of its entries in an annotation of the object that has them, as there is no place for
// it in an entry.
type mark struct {
	// Writer is the identity of the process that wrote last; empty if it has taken its entries away.
	Writer string `json:"writer,omitempty"`
	// Started is when that process started.
	Started time.Time `json:"started,omitzero"`
	// Leaving tells that it exits, and that its entries go soon unless another process of the operator takes over.
	Leaving bool `json:"leaving,omitempty"`
	// Entries are the names of the entries of the operator.
	Entries []string `json:"entries,omitempty"`
}

// document is one object with the entries of several operators. It is not decoded into Go's types, as these may lack
// fields that others have set in their entries.
type document struct {
	object *unstructured.Unstructured
	// annotation is where the mark is.
	annotation string
}

func newDocument(kind schema.GroupVersionKind, name, annotation string) document {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	return document{object, annotation}
}

// mark is that of the operator. One that cannot be read is none.
func (d document) mark() mark {
	var m mark
	if json.Unmarshal([]byte(d.object.GetAnnotations()[d.annotation]), &m) != nil {
		return mark{}
	}
	return m
}

// isMarked tells whether the operator has anything there.
func (d document) isMarked() bool {
	_, marked := d.object.GetAnnotations()[d.annotation]
	return marked
}

func (d document) entries() []any {
	entries, _ := d.object.Object["webhooks"].([]any)
	return entries
}

// own are the entries of the operator: those that it marked, and those that have the names of what it would write.
func (d document) own(wanted []any) []any {
	return slices.DeleteFunc(slices.Clone(d.entries()), func(entry any) bool { return !d.isOwn(entry, wanted) })
}

func (d document) isOwn(entry any, wanted []any) bool {
	name := nameOf(entry)
	return slices.Contains(d.mark().Entries, name) ||
		slices.ContainsFunc(wanted, func(other any) bool { return nameOf(other) == name })
}

// write puts the entries of the operator into the place of those that it has there, behind all others, which stay as
// they are.
func (d document) write(wanted []any, m mark) error {
	entries := slices.DeleteFunc(slices.Clone(d.entries()), func(entry any) bool { return d.isOwn(entry, wanted) })
	m.Entries = nil
	for _, entry := range wanted {
		entries = append(entries, d.withFormerBundle(entry))
		m.Entries = append(m.Entries, nameOf(entry))
	}
	d.object.Object["webhooks"] = entries
	return d.say(m)
}

// say replaces the mark.
func (d document) say(m mark) error {
	annotations := d.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding the annotation %s: %w", d.annotation, err)
	}
	annotations[d.annotation] = string(text)
	if m.Writer == "" && len(m.Entries) == 0 {
		delete(annotations, d.annotation)
	}
	d.object.SetAnnotations(annotations)
	return nil
}

// withFormerBundle keeps the CA bundle that somebody else has put into an entry of ours that comes without one.
func (d document) withFormerBundle(entry any) any {
	if bundleOf(entry) != nil {
		return entry
	}
	for _, former := range d.entries() {
		if bundle := bundleOf(former); bundle != nil && nameOf(former) == nameOf(entry) {
			return withBundle(entry, bundle)
		}
	}
	return entry
}

// withBundle is the entry with another CA bundle; nil is none.
func withBundle(entry, bundle any) any {
	fields, _ := runtime.DeepCopyJSONValue(entry).(map[string]any)
	client, _ := fields["clientConfig"].(map[string]any)
	switch {
	case client == nil:
		return entry
	case bundle == nil:
		delete(client, "caBundle")
	default:
		client["caBundle"] = bundle
	}
	return fields
}

func bundleOf(entry any) any {
	fields, _ := entry.(map[string]any)
	client, _ := fields["clientConfig"].(map[string]any)
	return client["caBundle"]
}

func nameOf(entry any) string {
	fields, _ := entry.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// equal tells whether two lists of entries are the same but for their order and their CA bundles, if those are somebody
// else's.
func equal(a, b []any, foreignBundles bool) bool {
	plain := func(list []any) []string {
		var texts []string
		for _, entry := range list {
			if foreignBundles {
				entry = withBundle(entry, nil)
			}
			text, _ := json.Marshal(entry)
			texts = append(texts, string(text))
		}
		slices.SortFunc(texts, strings.Compare)
		return texts
	}
	return slices.Equal(plain(a), plain(b))
}
