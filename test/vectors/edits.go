package vectors

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Edit makes a function that edits an object from its description: the "fn" that
// it is, with its "path", a string with dots or a list of keys, and its "value".
// Finalizers are not known here: who plays them has functions for that.
func Edit(description Fields) (func(object map[string]any) error, error) {
	path := Path(description["path"])
	change, known := map[string]func(parent map[string]any, key string, value any) error{
		"set":      func(parent map[string]any, key string, value any) error { parent[key] = value; return nil },
		"remove":   func(parent map[string]any, key string, _ any) error { delete(parent, key); return nil },
		"append":   appendItem,
		"del_item": deleteItem,
	}[description.Text("fn", "")]
	if !known || len(path) == 0 {
		return nil, fmt.Errorf("the harness does not know the function %v", description)
	}
	return func(object map[string]any) error {
		parent, err := parentOf(object, path, description["fn"] == "set" || description["fn"] == "append")
		if err != nil || parent == nil {
			return err
		}
		return change(parent, path[len(path)-1], description["value"])
	}, nil
}

// Path reads a field: a string with dots, or a list of keys; nil is none.
func Path(spec any) []string {
	switch spec := spec.(type) {
	case string:
		return strings.Split(spec, ".")
	case []any:
		path := make([]string, len(spec))
		for i, key := range spec {
			path[i] = fmt.Sprint(key)
		}
		return path
	}
	return nil
}

// appendItem adds a value unless the list contains it: functions can run again.
func appendItem(parent map[string]any, key string, value any) error {
	list, err := listIn(parent, key)
	if err == nil && indexOf(list, value) < 0 {
		parent[key] = append(slices.Clone(list), value)
	}
	return err
}

func deleteItem(parent map[string]any, key string, value any) error {
	list, err := listIn(parent, key)
	if at := indexOf(list, value); err == nil && at >= 0 {
		parent[key] = slices.Delete(slices.Clone(list), at, at+1)
	}
	return err
}

func indexOf(list []any, value any) int {
	return slices.IndexFunc(list, func(item any) bool { return reflect.DeepEqual(item, value) })
}

func listIn(parent map[string]any, key string) ([]any, error) {
	switch list := parent[key].(type) {
	case nil:
		return nil, nil
	case []any:
		return list, nil
	default:
		return nil, fmt.Errorf("%s is not a list but %v", key, list)
	}
}

// parentOf makes the mappings that are missing on the way, or gives nil.
func parentOf(object map[string]any, path []string, create bool) (map[string]any, error) {
	for i, key := range path[:len(path)-1] {
		if object[key] == nil && !create {
			return nil, nil
		}
		if object[key] == nil {
			object[key] = map[string]any{}
		}
		next, ok := object[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not a mapping but %v", strings.Join(path[:i+1], "."), object[key])
		}
		object = next
	}
	return object, nil
}
