package journal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// maxWrittenPaths limits the paths that are kept of one write.
const maxWrittenPaths = 12

// RecordWrite records a write of a patch of the object, or its failure. The first argument is empty for the write at
// the end of a pass, or names the origin otherwise. Nothing is recorded if no request was necessary.
func (o ObjectJournal) RecordWrite(
	by string, patch patching.Patch, before map[string]any, result patching.WriteResult, err error,
) {
	// Without an error or a response, no request was sent.
	if o.kind == nil || err == nil && result.Body == nil && !result.Gone {
		return
	}
	// List the paths of the merge patch. Map iteration is random, so sort them, or equal writes would not be merged.
	what := patchedPaths(nil, nil, patch.Merge)
	slices.Sort(what)
	// A changed finalizer is our own transform; further transforms come from handlers.
	own := 0
	if result.Body != nil && countFinalizers(before) != countFinalizers(result.Body) {
		// The finalizers are not a part of the merge patch, so they are found by comparing the object before and after.
		what, own = append(what, "metadata.finalizers"), 1
	}
	if len(patch.Transforms) > own {
		what = append(what, "changes by handlers")
	}
	// The paths are sorted, so equal writes keep the same ones.
	if len(what) > maxWrittenPaths {
		what = append(what[:maxWrittenPaths], "and more")
	}
	// A refused status is recorded even if the rest was written.
	failure := o.kind.errorText(cmp.Or(err, result.StatusRefusal))
	o.addEntry(Entry{Write: o.kind.sharedWrite(&Write{Origin: by, Paths: what, Error: failure})})
}

// patchedPaths returns the paths that a merge patch sets, down to the third key. Removed paths have a minus sign.
func patchedPaths(all, at []string, merge map[string]any) []string {
	for key, value := range merge {
		// Limit the capacity, so that append copies: siblings must not share the array.
		path := append(at[:len(at):len(at)], key)
		inner, isMapping := value.(map[string]any)
		switch {
		case isMapping && len(path) < 3:
			all = patchedPaths(all, path, inner)
		case value == nil:
			all = append(all, "-"+storage.TextExcerpt(strings.Join(path, ".")))
		default:
			all = append(all, storage.TextExcerpt(strings.Join(path, ".")))
		}
	}
	return all
}

// countFinalizers returns the number of finalizers. Counting is enough, because one write never replaces one finalizer
// by another.
func countFinalizers(body map[string]any) int {
	metadata, _ := body["metadata"].(map[string]any)
	list, _ := metadata["finalizers"].([]any)
	return len(list)
}
