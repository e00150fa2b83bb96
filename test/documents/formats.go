package documents

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// SentBody is a body that the operator of a trace has sent.
type SentBody struct {
	// Path is the path of the request, without the query.
	Path string
	// Body is the object or patch.
	Body map[string]any
}

var (
	// tracedRequest is a line of a trace with the lines below it.
	tracedRequest = regexp.MustCompile(`(?m)^[+-][\d.]+s  (?:POST|PUT|PATCH) ([^?\s]+).*\n((?:         .*\n)+)`)
	// callLine is the line of a handler's call.
	callLine = regexp.MustCompile(`(?m)^[+-][\d.]+s  call \S+ .*?: (\S+) #\d+: `)
)

// SentBodies returns the bodies of the requests of the operator in a trace.
func SentBodies(trace string) (all []SentBody, err error) {
	for _, found := range tracedRequest.FindAllStringSubmatch(trace, -1) {
		_, text, _ := strings.Cut(found[2], "\n") // the first line is the content type
		var body map[string]any
		if err := yaml.Unmarshal([]byte(text), &body); err != nil {
			return nil, fmt.Errorf("%s: %w", found[1], err)
		}
		all = append(all, SentBody{found[1], body})
	}
	return all, nil
}

// CalledHandlers returns the ids of the handlers in a trace, as the names of their annotations have them.
func CalledHandlers(trace string) (ids []string) {
	for _, found := range callLine.FindAllStringSubmatch(trace, -1) {
		ids = append(ids, strings.ReplaceAll(found[1], "/", "."))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Formats returns the names of the annotations, labels, finalizers and status fields in a body, and the fields of an
// event or of a peering record. Annotations and labels of the operator have the prefix <prefix>, others are left out.
func (s SentBody) Formats(prefixes ...string) (names []string) {
	metadata, _ := s.Body["metadata"].(map[string]any)
	for _, part := range []string{"annotations", "labels"} {
		for key := range mapping(metadata, part) {
			prefix, name, _ := strings.Cut(key, "/")
			if slices.Contains(prefixes, prefix) {
				names = append(names, "<prefix>/"+name)
			}
		}
	}
	finalizers, _ := metadata["finalizers"].([]any)
	for _, finalizer := range finalizers {
		names = append(names, "finalizer "+fmt.Sprint(finalizer))
	}
	if references, _ := metadata["ownerReferences"].([]any); len(references) > 0 {
		names = append(names, "owner reference")
	}
	status, isPeering := mapping(s.Body, "status"), strings.Contains(s.Path, "kopfpeerings/")
	for field := range status {
		if isPeering { // the fields are identities, with a record each
			names = append(names, slices.Collect(maps.Keys(mapping(status, field)))...)
		} else {
			names = append(names, "status."+field)
		}
	}
	if reason, isEvent := s.Body["reason"].(string); isEvent {
		names = append(names, reason)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func mapping(of map[string]any, key string) map[string]any {
	inner, _ := of[key].(map[string]any)
	return inner
}

// FormatRow is a row of a table with the columns Example and Shown by.
type FormatRow struct {
	// Section is the heading above the table.
	Section string
	// Name is the first cell, Names are the texts in backquotes in it.
	Name  string
	Names []string
	// Examples are the texts in backquotes in the cell of the example.
	Examples []string
	// Files are the targets of the links in the last cell, from the folder of the document.
	Files []string
}

// FormatRows returns the rows of all tables with an example.
func FormatRows(document string) (rows []FormatRow) {
	for _, grid := range Grids(document) {
		example, last := slices.Index(grid.Head, "Example"), len(grid.Head)-1
		if example < 0 || grid.Head[last] != "Shown by" {
			continue
		}
		for _, row := range grid.Rows {
			rows = append(rows, FormatRow{
				grid.Section, row[0], Spans(row[0]), Spans(row[example]), Links(row[last]),
			})
		}
	}
	return rows
}

// layoutCharacters is what differs between files with the same data: spaces, line breaks, and backslashes before
// quotes.
var layoutCharacters = regexp.MustCompile(`[\s\\]+`)

// Contains is true if the text has the example, without regard to spaces, line breaks and backslashes.
func Contains(text, example string) bool {
	return strings.Contains(layoutCharacters.ReplaceAllString(text, ""), layoutCharacters.ReplaceAllString(example, ""))
}
