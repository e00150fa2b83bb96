package changes

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// mostAliases is how many ids of one name are read.
const mostAliases = 4

// references are the sub-handlers that the record of a handler mentions. Ids that differ in "/" and "." alone have one
// annotation: a record that mentions it thousands of times would have it read as often.
func references(e *execution.Entry) []string {
	seen := make(map[string]int, len(e.Subrefs))
	return slices.DeleteFunc(slices.Clone(e.Subrefs), func(id string) bool {
		name := keys.V2("", id)
		seen[name]++
		return seen[name] > mostAliases
	})
}
