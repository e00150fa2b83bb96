package normal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// uids and times match these values also within texts, such as messages and paths.
var (
	uidPattern  = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	timePattern = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
)

// Names holds the uids and the generated names of one run. The zero value is empty.
type Names struct {
	namesByUID   map[string]string // uid to kind and name of its object
	nameReplacer *strings.Replacer // nil without generated names
}

// NewNames returns the names of these objects. Objects with the same generateName are numbered in the order of their
// contents, so that the order of their creation does not matter. Objects with equal contents are numbered in the order
// of their creation.
func NewNames(objects []map[string]any) *Names {
	n := &Names{}
	alike := map[string][]generatedName{}
	for _, object := range objects {
		metadata := metadataOf(object)
		prefix, name := stringField(metadata, "generateName"), stringField(metadata, "name")
		if prefix != "" && len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
			alike[prefix] = append(alike[prefix], generatedName{name: name, object: object})
		}
	}
	var replacements []generatedName
	for prefix, all := range alike {
		replacements = append(replacements, numberGeneratedNames(prefix, all)...)
	}
	// A Replacer prefers earlier pairs. Longer names come first, because one name can be the prefix of another.
	slices.SortFunc(replacements, func(a, b generatedName) int {
		return cmp.Or(cmp.Compare(len(b.name), len(a.name)), cmp.Compare(a.name, b.name))
	})
	var pairs []string
	for _, one := range replacements {
		pairs = append(pairs, one.name, one.replacement)
	}
	if len(pairs) > 0 {
		n.nameReplacer = strings.NewReplacer(pairs...)
	}
	// n.uids is only set after the loop, so that no uids are replaced while the names of the objects are built.
	known := map[string]string{}
	for _, object := range objects {
		if uid := stringField(metadataOf(object), "uid"); uid != "" {
			known[uid] = n.NormalizeText(kindAndName(object))
		}
	}
	n.namesByUID = known
	return n
}

// generatedName is an object with a generated name, its replacement, and the content by which it is sorted.
type generatedName struct {
	name, replacement, content string
	object                     map[string]any
}

// numberGeneratedNames sets the replacement of each name: the prefix and a number.
func numberGeneratedNames(prefix string, all []generatedName) []generatedName {
	for i := range all {
		all[i].content = comparableContent(all[i], prefix)
	}
	slices.SortStableFunc(all, func(a, b generatedName) int {
		return cmp.Or(
			cmp.Compare(a.content, b.content),
			cmp.Compare(creationTimestamp(a.object), creationTimestamp(b.object)), cmp.Compare(a.name, b.name),
		)
	})
	for i := range all {
		all[i].replacement = fmt.Sprintf("%s<%d>", prefix, i+1)
	}
	return all
}

// comparableContent returns the normalized object as JSON, with the prefix in place of its name.
func comparableContent(g generatedName, prefix string) string {
	anonymous := &Names{nameReplacer: strings.NewReplacer(g.name, prefix)}
	data, err := json.Marshal(anonymous.NormalizeObject(g.object))
	if err != nil { // not JSON values: only the creation times decide the order
		return ""
	}
	return string(data)
}

// creationTimestamp returns the creationTimestamp. RFC 3339 times in UTC sort as texts.
func creationTimestamp(object map[string]any) string {
	return stringField(metadataOf(object), "creationTimestamp")
}
