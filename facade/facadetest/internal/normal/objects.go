package normal

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// What stands in the place of a value that differs from run to run.
const (
	aTime    = "<time>"
	aUID     = "<uid>"
	current  = "<the current one>"
	outdated = "<an earlier one>"
)

// Object gives a copy of the object as it looks in every run:
//
//   - its uid, resourceVersion, generation, managedFields and creationTimestamp are not there;
//   - uids of objects that are known are "<uid of Database shop/orders>", others "<uid>", also within texts;
//   - times in the form of RFC 3339 are "<time>", also within texts; so it shows that an object is being deleted;
//   - an observedGeneration says whether it is the current one;
//   - the ends of generated names are numbers, as in "orders-<1>", also within texts.
//
// The object is not changed. The copy has JSON values, as the object has.
func (n *Names) Object(object map[string]any) map[string]any {
	generation := metadataOf(object)["generation"]
	copied, _ := n.value(object, func(observed any) any {
		if observed == generation {
			return current
		}
		return outdated
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

// Objects gives [Names.Object] of each, in the order of their groups, kinds, namespaces and names.
func (n *Names) Objects(objects []map[string]any) []map[string]any {
	all := make([]map[string]any, 0, len(objects))
	for _, object := range objects {
		all = append(all, n.Object(object))
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int {
		return cmp.Compare(fullName(a), fullName(b))
	})
	return all
}

// Text gives a text, such as an error or a path, with the uids, times and generated names as in [Names.Object].
func (n *Names) Text(text string) string {
	text = uids.ReplaceAllStringFunc(text, func(uid string) string {
		if whose, known := n.uids[uid]; known {
			return "<uid of " + whose + ">"
		}
		return aUID
	})
	if n.generated != nil {
		text = n.generated.Replace(text)
	}
	return times.ReplaceAllString(text, aTime)
}

// value is a copy of any JSON value.
func (n *Names) value(v any, generation func(any) any) any {
	switch v := v.(type) {
	case string:
		return n.Text(v)
	case []any:
		all := make([]any, 0, len(v))
		for _, item := range v {
			all = append(all, n.value(item, generation))
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, item := range v {
			if key == "observedGeneration" {
				all[key] = generation(item)
				continue
			}
			all[n.Text(key)] = n.value(item, generation)
		}
		return all
	default:
		return v
	}
}

func metadataOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return metadata
}

func textOf(of map[string]any, name string) string {
	text, _ := of[name].(string)
	return text
}

// nameOf is the name of an object with its kind, such as "Database shop/orders".
func nameOf(object map[string]any) string {
	metadata := metadataOf(object)
	name := textOf(metadata, "name")
	if namespace := textOf(metadata, "namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return textOf(object, "kind") + " " + name
}

func fullName(object map[string]any) string {
	group, _, _ := strings.Cut(textOf(object, "apiVersion"), "/")
	return group + " " + nameOf(object)
}
