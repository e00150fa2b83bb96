package children

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// record is the stored set of one handler for one parent, the value of an annotation of the parent:
//
//	{"parent": "<uid>", "children": {"v1/ConfigMap/default/settings": "<uid>"}}
//
// Retained children are in "retained" instead, which former versions of the operator ignore. For children with
// UntilDone, "runs" contains the digest of the declaration and the outcome. A large record has everything in "packed"
// instead, see [packChildren]. A former version of the operator reads it as an empty record and restores it from the
// labels of the children.
//
// A record with the uid of another parent was copied with the object and is ignored. Anyone who may annotate the parent
// can write a record. So it only lists the children to look at, and proves nothing about them. Its uids are for older
// versions of the operator, and for people.
type record struct {
	Parent   types.UID            `json:"parent"`             // detects a record that was copied with its parent
	Children map[string]types.UID `json:"children"`           // by name; the uid is empty before the apply
	Retained map[string]types.UID `json:"retained,omitempty"` // the same for retained children
	Runs     map[string]string    `json:"runs,omitempty"`     // the text of the run, by name
	Packed   string               `json:"packed,omitempty"`   // replaces all other fields but Parent
}

// recordAnnotation returns the annotation for the record of a handler. Handlers in the background have another key,
// since a daemon can have the id of a change handler.
func recordAnnotation(prefix string, body map[string]any, handler DeclaringHandler) string {
	key := keys.ChildrenOf + handler.ID
	if handler.Background {
		key = keys.ChildrenOfRun + handler.ID
	}
	return keys.AnnotationKeyOn(body, prefix, "", key)
}

// readRecord reads the record in this annotation. An absent record is an empty set.
func readRecord(body map[string]any, name string) (childSet, error) {
	annotations, err := storage.AnnotationsOf(body)
	if err != nil {
		return nil, err
	}
	// Another type than a string counts as absent: the API server accepts only strings.
	text, _ := annotations[name].(string)
	all, err := decodeRecord(text, uidOf(body))
	if err != nil {
		return nil, malformedError(name, err)
	}
	return all, nil
}

// decodeRecord decodes the text of a record of the parent. An empty text is an empty set.
func decodeRecord(text string, parent types.UID) (childSet, error) {
	if text == "" {
		return childSet{}, nil
	}
	var kept record
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return nil, err
	}
	all := make(childSet, len(kept.Children))
	// The annotation came along with a copy of the parent, for example by a backup.
	if kept.Parent != parent {
		return all, nil
	}
	// Plain entries follow the packed ones, so they win.
	if err := unpackChildren(kept.Packed, all); err != nil {
		return nil, err
	}
	for _, part := range []map[string]types.UID{kept.Children, kept.Retained} {
		for text, uid := range part {
			child, version, err := parseChild(text)
			if err != nil {
				return nil, err
			}
			_, retained := kept.Retained[text]
			all[child] = childEntry{version, uid, retained, parseRun(kept.Runs[text])}
		}
	}
	return all, nil
}

// encodeRecord encodes a record. The keys are sorted, so equal sets have equal texts.
func encodeRecord(parent types.UID, children childSet) (string, error) {
	kept := record{Parent: parent, Children: make(map[string]types.UID, len(children))}
	for child, known := range children {
		name := formatChild(child, known.version)
		// A former version of the operator must not find retained children: it would delete them.
		if known.isRetained {
			addTo(&kept.Retained, name, known.uid)
		} else {
			kept.Children[name] = known.uid
		}
		if known.run.digest != "" {
			addTo(&kept.Runs, name, known.run.String())
		}
	}
	text, err := json.Marshal(kept)
	return string(text), err
}

// addTo adds an entry to a map, which it creates if necessary.
func addTo[V any](all *map[string]V, name string, value V) {
	if *all == nil {
		*all = map[string]V{}
	}
	(*all)[name] = value
}

// storedForm returns the text of a record for the annotation. It is packed if it is large.
func storedForm(parent types.UID, children childSet) (string, error) {
	text, err := encodeRecord(parent, children)
	if err != nil || len(text) <= packingThreshold {
		return text, err
	}
	// The packed form has no uids, which prove nothing in a record anyway.
	packed, err := packChildren(children)
	if err != nil {
		return "", err
	}
	small, err := json.Marshal(record{Parent: parent, Children: map[string]types.UID{}, Packed: packed})
	return string(small), err
}

// isRecord reports whether an annotation is the record of a handler, and whether that handler runs in the background.
func isRecord(prefix, name string) (is, background bool) {
	key, ok := strings.CutPrefix(name, prefix+"/")
	background = strings.HasPrefix(key, keys.ChildrenOfRun)
	return ok && (background || strings.HasPrefix(key, keys.ChildrenOf)), background
}

// malformedError describes an unreadable record with its remedy.
func malformedError(name string, err error) error {
	return fmt.Errorf("the children in annotation %s cannot be read: %w; remove the annotation, and delete by hand "+
		"the children that are not declared any more", name, err)
}

// readAllChildren returns the children in all records whose annotations the function selects.
func readAllChildren(body map[string]any, is func(name string) bool) (childSet, error) {
	records, err := readRecords(body, is)
	return unionOf(records), err
}

// readRecords returns the records whose annotations the function selects, by annotation. It is nil without any record.
func readRecords(body map[string]any, selects func(name string) bool) (map[string]childSet, error) {
	annotations, err := storage.AnnotationsOf(body)
	if err != nil {
		return nil, err
	}
	var all map[string]childSet
	for name := range annotations {
		if !selects(name) {
			continue
		}
		some, err := readRecord(body, name)
		// One unreadable record fails all of them: without it, children of its handler could be deleted by mistake.
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = map[string]childSet{}
		}
		all[name] = some
	}
	return all, nil
}

// unionOf merges the children of all records.
func unionOf(records map[string]childSet) childSet {
	all := childSet{}
	for _, some := range records {
		all = all.mergedWith(some)
	}
	return all
}

// writeRecord writes the record into the body, or removes it if it is empty. It also sets the marker that keeps
// annotations of the prefix out of the essences of other operators.
func writeRecord(body map[string]any, prefix, name string, children childSet) error {
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("storing annotation %s: the object has no metadata", name)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	// An empty record means the same as an absent one.
	if len(children) == 0 {
		delete(annotations, name)
		return nil
	}
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	text, err := storedForm(uidOf(body), children)
	if err != nil {
		return fmt.Errorf("encoding annotation %s: %w", name, err)
	}
	annotations[name] = text
	if keys.NeedsMarker(prefix) {
		annotations[keys.MarkerKey(prefix)] = keys.ManagedValue
	}
	return nil
}

// uidOf returns the uid of an object; empty if there is none.
func uidOf(body map[string]any) types.UID { return types.UID(patching.ObjectUID(body)) }

// DeclaredNames returns the sorted names of all children in the records of the object, in the form of messages.
func DeclaredNames(prefix string, body map[string]any) (names []string, err error) {
	// The prefix is enough to recognize records.
	k := &Keeper{Prefix: prefix}
	all, err := readAllChildren(body, k.isRecord)
	for child := range all {
		names = append(names, child.String())
	}
	slices.Sort(names)
	return names, err
}

// DeclaredKinds returns the kinds of all children in the records of the object, each once.
func DeclaredKinds(prefix string, body map[string]any) (kinds []schema.GroupKind, err error) {
	k := &Keeper{Prefix: prefix}
	all, err := readAllChildren(body, k.isRecord)
	for child := range all {
		if kind := (schema.GroupKind{Group: child.group, Kind: child.kind}); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, err
}
