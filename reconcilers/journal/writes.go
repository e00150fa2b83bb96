package journal

import (
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// mostPlaces is how many places of one write are kept.
const mostPlaces = 12

// Wrote notes what was sent to the API server of a patch of the object, or why that has failed. Whoever has written is
// empty for what ends a pass, else the id of a handler. Nothing is noted if nothing had to be sent.
func (o Object) Wrote(by string, patch patching.Patch, before map[string]any, result patching.Result, err error) {
	if o.kind == nil || err == nil && result.Body == nil && !result.Gone {
		return
	}
	what := places(nil, nil, patch.Merge)
	slices.Sort(what)
	own := 0
	if result.Body != nil && finalizers(before) != finalizers(result.Body) {
		what, own = append(what, "metadata.finalizers"), 1
	}
	if len(patch.Transforms) > own {
		what = append(what, "changes by handlers")
	}
	if len(what) > mostPlaces {
		what = append(what[:mostPlaces], "and more")
	}
	written := &Write{By: by, What: what}
	if err == nil {
		err = result.StatusRefused
	}
	if err != nil {
		written.Error = o.kind.text(err)
	}
	o.note(Entry{Write: o.kind.sharedWrite(written)})
}

// places are those that a merge-patch sets, as far as the third key; those that it removes have a minus before them.
func places(all, at []string, merge map[string]any) []string {
	for key, value := range merge {
		path := append(at[:len(at):len(at)], key)
		inner, isMapping := value.(map[string]any)
		switch {
		case isMapping && len(path) < 3:
			all = places(all, path, inner)
		case value == nil:
			all = append(all, "-"+storage.Excerpt(strings.Join(path, ".")))
		default:
			all = append(all, storage.Excerpt(strings.Join(path, ".")))
		}
	}
	return all
}

// finalizers counts them: nobody exchanges one for another in a write.
func finalizers(body map[string]any) int {
	metadata, _ := body["metadata"].(map[string]any)
	list, _ := metadata["finalizers"].([]any)
	return len(list)
}
