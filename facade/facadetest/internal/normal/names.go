package normal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	uids  = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	times = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
)

// Names are the uids and the generated names of one run. The zero value knows none.
type Names struct {
	uids      map[string]string // whose they are
	generated *strings.Replacer
}

// Of knows the uids and generated names of these objects. Those of one generateName are numbered in the order of their
// contents, so that it does not matter which of them was made first; those that are alike, in the order of their
// creation.
func Of(objects []map[string]any) *Names {
	n := &Names{}
	alike := map[string][]generated{}
	for _, object := range objects {
		metadata := metadataOf(object)
		prefix, name := textOf(metadata, "generateName"), textOf(metadata, "name")
		if prefix != "" && len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
			alike[prefix] = append(alike[prefix], generated{name: name, object: object})
		}
	}
	var replacements []generated
	for prefix, all := range alike {
		replacements = append(replacements, numbered(prefix, all)...)
	}
	slices.SortFunc(replacements, func(a, b generated) int { // the longer one first, as one may begin with another
		return cmp.Or(cmp.Compare(len(b.name), len(a.name)), cmp.Compare(a.name, b.name))
	})
	var pairs []string
	for _, one := range replacements {
		pairs = append(pairs, one.name, one.shown)
	}
	if len(pairs) > 0 {
		n.generated = strings.NewReplacer(pairs...)
	}
	known := map[string]string{}
	for _, object := range objects {
		if uid := textOf(metadataOf(object), "uid"); uid != "" {
			known[uid] = n.Text(nameOf(object))
		}
	}
	n.uids = known
	return n
}

// generated is an object with a generated name.
type generated struct {
	name, shown, content string
	object               map[string]any
}

// numbered gives each of them the name that it is shown by.
func numbered(prefix string, all []generated) []generated {
	for i := range all {
		all[i].content = contentOf(all[i], prefix)
	}
	slices.SortStableFunc(all, func(a, b generated) int {
		return cmp.Or(
			cmp.Compare(a.content, b.content),
			cmp.Compare(created(a.object), created(b.object)), cmp.Compare(a.name, b.name),
		)
	})
	for i := range all {
		all[i].shown = fmt.Sprintf("%s<%d>", prefix, i+1)
	}
	return all
}

// contentOf is all of an object but its name.
func contentOf(g generated, prefix string) string {
	anonymous := &Names{generated: strings.NewReplacer(g.name, prefix)}
	data, err := json.Marshal(anonymous.Object(g.object))
	if err != nil { // it is no JSON: then the times decide
		return ""
	}
	return string(data)
}

func created(object map[string]any) string { return textOf(metadataOf(object), "creationTimestamp") }
