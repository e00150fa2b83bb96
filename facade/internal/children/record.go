package children

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// record is what one handler has declared for one parent, as it is kept in an annotation:
//
//	{"parent": "<uid>", "children": {"v1/ConfigMap/default/settings": "<uid>"}}
//
// Children that are never deleted stand in "retained" instead, where former versions of the operator do not see them.
// Of children that are made until they are done, "runs" has the digest of the declaration and how it has ended. A large
// record has all of it in "packed" instead, see pack: a former version of the operator reads an empty one, and restores
// it from the labels of the children.
//
// One of another parent came along with a copy of that, and means nothing. Everybody who may annotate the parent can
// write a record. So it lists the children to look at, and proves nothing about them: the uids in it are for older
// versions of the operator, and for people.
type record struct {
	Parent   types.UID            `json:"parent"`
	Children map[string]types.UID `json:"children"`
	Retained map[string]types.UID `json:"retained,omitempty"`
	Runs     map[string]string    `json:"runs,omitempty"`
	Packed   string               `json:"packed,omitempty"`
}

// nameOf is the annotation of a handler on an object.
func nameOf(prefix string, body map[string]any, handler Handler) string {
	key := keys.ChildrenOf + handler.ID
	if handler.Background {
		key = keys.ChildrenOfRun + handler.ID
	}
	return keys.V2(prefix, keys.Mark(body, key))
}

// recorded reads the record of that name; an absent one is empty.
func recorded(body map[string]any, name string) (set, error) {
	annotations, err := storage.Annotations(body)
	if err != nil {
		return nil, err
	}
	text, _ := annotations[name].(string)
	all, err := decodeRecord(text, uidOf(body))
	if err != nil {
		return nil, malformed(name, err)
	}
	return all, nil
}

// decodeRecord reads the text of a record of the parent.
func decodeRecord(text string, parent types.UID) (set, error) {
	if text == "" {
		return set{}, nil
	}
	var kept record
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return nil, err
	}
	all := make(set, len(kept.Children))
	if kept.Parent != parent {
		return all, nil
	}
	if err := unpack(kept.Packed, all); err != nil {
		return nil, err
	}
	for _, part := range []map[string]types.UID{kept.Children, kept.Retained} {
		for text, uid := range part {
			child, version, err := parse(text)
			if err != nil {
				return nil, err
			}
			_, retained := kept.Retained[text]
			all[child] = entry{version, uid, retained, parseRun(kept.Runs[text])}
		}
	}
	return all, nil
}

// encodeRecord writes the text of a record. The keys are sorted.
func encodeRecord(parent types.UID, children set) (string, error) {
	kept := record{Parent: parent, Children: make(map[string]types.UID, len(children))}
	for child, known := range children {
		name := format(child, known.version)
		if known.retained {
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

func addTo[V any](all *map[string]V, name string, value V) {
	if *all == nil {
		*all = map[string]V{}
	}
	(*all)[name] = value
}

// storedForm returns the text of a record as the parent keeps it: packed, if it is large.
func storedForm(parent types.UID, children set) (string, error) {
	text, err := encodeRecord(parent, children)
	if err != nil || len(text) <= packedFrom {
		return text, err
	}
	packed, err := pack(children)
	if err != nil {
		return "", err
	}
	small, err := json.Marshal(record{Parent: parent, Children: map[string]types.UID{}, Packed: packed})
	return string(small), err
}

// isRecord tells whether an annotation is the record of a handler, and whether that is one in the background.
func isRecord(prefix, name string) (is, background bool) {
	key, ok := strings.CutPrefix(name, prefix+"/")
	background = strings.HasPrefix(key, keys.ChildrenOfRun)
	return ok && (background || strings.HasPrefix(key, keys.ChildrenOf)), background
}

func malformed(name string, err error) error {
	return fmt.Errorf("the children in annotation %s cannot be read: %w; remove the annotation, and delete by hand the "+
		"children that are not declared any more", name, err)
}

// recordedAll is what the handlers have declared whose annotations the function names.
func recordedAll(body map[string]any, is func(name string) bool) (set, error) {
	records, err := recordsOf(body, is)
	return union(records), err
}

// recordsOf returns the records whose annotations the function selects, by the names of these.
func recordsOf(body map[string]any, selects func(name string) bool) (map[string]set, error) {
	annotations, err := storage.Annotations(body)
	if err != nil {
		return nil, err
	}
	var all map[string]set
	for name := range annotations {
		if !selects(name) {
			continue
		}
		some, err := recorded(body, name)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = map[string]set{}
		}
		all[name] = some
	}
	return all, nil
}

// union returns the children of all records.
func union(records map[string]set) set {
	all := set{}
	for _, some := range records {
		all = all.with(some)
	}
	return all
}

// store writes the record into the body, with the marker that keeps it out of what users have said; an empty one is
// removed.
func store(body map[string]any, prefix, name string, children set) error {
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("storing annotation %s: the object has no metadata", name)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
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

func uidOf(body map[string]any) types.UID {
	metadata, _ := body["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return types.UID(uid)
}

// Declared are the children that the object remembers, of all its handlers, as messages name them.
func Declared(prefix string, body map[string]any) (names []string, err error) {
	k := &Keeper{Prefix: prefix}
	all, err := recordedAll(body, k.isRecord)
	for child := range all {
		names = append(names, child.String())
	}
	slices.Sort(names)
	return names, err
}
