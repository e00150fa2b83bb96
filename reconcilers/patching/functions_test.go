package patching_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// transformsOf makes the transformation functions that the vectors describe.
func transformsOf(t *testing.T, descriptions []any) []patching.Transform {
	t.Helper()
	var out []patching.Transform
	for _, description := range descriptions {
		d := vectors.Known(t, description, "fn", "path", "value", "finalizer")
		switch d.Text("fn", "") {
		case "block_deletion":
			out = append(out, patching.BlockDeletion(d.Text("finalizer", kopfFinalizer)))
		case "allow_deletion":
			out = append(out, patching.AllowDeletion(d.Text("finalizer", kopfFinalizer)))
		default:
			edit, err := vectors.Edit(d)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, edit)
		}
	}
	return out
}

func set(path []string, value any) patching.Transform { return edit("set", path, value) }

func appendItem(path []string, value any) patching.Transform { return edit("append", path, value) }

func edit(fn string, path []string, value any) patching.Transform {
	made, err := vectors.Edit(vectors.Fields{"fn": fn, "path": strings.Join(path, "."), "value": value})
	if err != nil {
		panic(err)
	}
	return made
}

func remove(path []string) patching.Transform { return edit("remove", path, nil) }
