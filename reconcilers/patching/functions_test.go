package patching_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// transformsOf makes the transformation functions that the vectors describe.
func transformsOf(t *testing.T, descriptions []any) []patching.Transform {
	t.Helper()
	var out []patching.Transform
	for _, description := range descriptions {
		d := vectors.Known(t, description, "fn", "path", "value", "finalizer")
		finalizer := d.Text("finalizer", kopfFinalizer)
		path := strings.Split(d.Text("path", ""), ".")
		switch name := d.Text("fn", ""); name {
		case "block_deletion":
			out = append(out, patching.BlockDeletion(finalizer))
		case "allow_deletion":
			out = append(out, patching.AllowDeletion(finalizer))
		case "set":
			out = append(out, set(path, d["value"]))
		case "remove":
			out = append(out, remove(path))
		case "append":
			out = append(out, appendItem(path, d["value"]))
		case "del_item":
			out = append(out, deleteItem(path, d["value"]))
		default:
			t.Fatalf("the harness does not know the function %q", name)
		}
	}
	return out
}

func set(path []string, value any) patching.Transform {
	return func(body map[string]any) error {
		parent, err := parentOf(body, path)
		if err == nil {
			parent[path[len(path)-1]] = value
		}
		return err
	}
}

func remove(path []string) patching.Transform {
	return func(body map[string]any) error {
		parent, err := parentOf(body, path)
		if err == nil {
			delete(parent, path[len(path)-1])
		}
		return err
	}
}

func appendItem(path []string, value any) patching.Transform {
	return func(body map[string]any) error {
		held, _ := diff.Resolve(body, path)
		list, _ := held.([]any)
		return set(path, append(list, value))(body)
	}
}

func deleteItem(path []string, value any) patching.Transform {
	return func(body map[string]any) error {
		held, _ := diff.Resolve(body, path)
		list, _ := held.([]any)
		if at := slices.IndexFunc(list, func(item any) bool { return diff.Equal(item, value) }); at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
		return set(path, list)(body)
	}
}

// parentOf makes the mappings that are missing on the way.
func parentOf(body map[string]any, path []string) (map[string]any, error) {
	for _, key := range path[:len(path)-1] {
		if _, ok := body[key]; !ok {
			body[key] = map[string]any{}
		}
		next, ok := body[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s of %v is not a mapping", key, path)
		}
		body = next
	}
	return body, nil
}
