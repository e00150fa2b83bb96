package normal

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// The replacements of values that differ from run to run.
const (
	timePlaceholder    = "<time>"
	uidPlaceholder     = "<uid>"
	currentGeneration  = "<the current one>"
	outdatedGeneration = "<an earlier one>"
)

// NormalizeObject returns a copy of the object in the same form for each run:
//
//   - The uid, resourceVersion, generation, managedFields and creationTimestamp are removed.
//   - The uids of known objects become "<uid of Database shop/orders>", others "<uid>", also within texts.
//   - Times in the form of RFC 3339 become "<time>", also within texts. A deletion in progress is therefore still
//     visible.
//   - An observedGeneration becomes a text that says whether it is the current one.
//   - Suffixes of generated names become numbers, as in "orders-<1>", also within texts.
//
// The original is not modified. It must have JSON values, and so has the copy.
func (n *Names) NormalizeObject(object map[string]any) map[string]any {
	generation := metadataOf(object)["generation"]
	copied, _ := n.normalizeValue(object, func(observed any) any {
		// The generation is that of the original, because the copy does not keep it.
		if observed == generation {
			return currentGeneration
		}
		return outdatedGeneration
	}).(map[string]any)
	metadata := maps.Clone(metadataOf(copied))
	for _, name := range []string{"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"} {
		delete(metadata, name)
	}
	if metadata != nil {
		copied["metadata"] = metadata
	}
	return copied
}

// NormalizeObjects returns [Names.NormalizeObject] of each object, sorted by group, kind, namespace and name.
func (n *Names) NormalizeObjects(objects []map[string]any) []map[string]any {
	all := make([]map[string]any, 0, len(objects))
	for _, object := range objects {
		all = append(all, n.NormalizeObject(object))
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int {
		return cmp.Compare(objectSortKey(a), objectSortKey(b))
	})
	return all
}

// NormalizeText returns the text, such as an error or a path, with uids, times and generated names replaced as in
// [Names.NormalizeObject].
func (n *Names) NormalizeText(text string) string {
	text = uidPattern.ReplaceAllStringFunc(text, func(uid string) string {
		if whose, known := n.namesByUID[uid]; known {
			return "<uid of " + whose + ">"
		}
		return uidPlaceholder
	})
	if n.nameReplacer != nil {
		text = n.nameReplacer.Replace(text)
	}
	return timePattern.ReplaceAllString(text, timePlaceholder)
}

// normalizeValue returns a normalized copy of any JSON value. Keys of maps are normalized, too.
func (n *Names) normalizeValue(v any, generation func(any) any) any {
	switch v := v.(type) {
	case string:
		return n.NormalizeText(v)
	case []any:
		all := make([]any, 0, len(v))
		for _, item := range v {
			all = append(all, n.normalizeValue(item, generation))
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, item := range v {
			if key == "observedGeneration" {
				all[key] = generation(item)
				continue
			}
			all[n.NormalizeText(key)] = n.normalizeValue(item, generation)
		}
		return all
	default:
		return v
	}
}

// metadataOf returns the metadata of the object, or nil.
func metadataOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return metadata
}

// stringField returns the string in a field, or an empty string.
func stringField(of map[string]any, name string) string {
	text, _ := of[name].(string)
	return text
}

// kindAndName returns the name of an object with its kind, such as "Database shop/orders".
func kindAndName(object map[string]any) string {
	metadata := metadataOf(object)
	name := stringField(metadata, "name")
	if namespace := stringField(metadata, "namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return stringField(object, "kind") + " " + name
}

// objectSortKey returns the text by which objects are sorted: the API group without its version, then kind and name.
func objectSortKey(object map[string]any) string {
	group, _, _ := strings.Cut(stringField(object, "apiVersion"), "/")
	return group + " " + kindAndName(object)
}
