package vectors

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
)

// runningCase is the case that a test plays.
type runningCase struct {
	family string
	roots  map[string]any
}

// runningCases are those that are being played, by the names of their tests: a bubble
// of virtual time has another test of the same name.
var runningCases sync.Map

// enter begins a case; the returned function ends it.
func enter(t testing.TB, family string, input, want any) (leave func()) {
	runningCases.Store(t.Name(), runningCase{family: family, roots: map[string]any{"input": input, "expected": want}})
	return func() { runningCases.Delete(t.Name()) }
}

// placeOf returns the family of the case and the path of the mapping in it.
func placeOf(t testing.TB, mapping map[string]any) string {
	value, found := runningCases.Load(t.Name())
	if !found {
		return fmt.Sprint(mapping)
	}
	c, _ := value.(runningCase)
	for root, value := range c.roots {
		if at, found := find(value, reflect.ValueOf(mapping).Pointer()); found {
			return fmt.Sprintf("%s%s of the family %q: %v", root, at, c.family, mapping)
		}
	}
	return fmt.Sprintf("the family %q: %v", c.family, mapping)
}

// find returns the path of the mapping at the address.
func find(value any, address uintptr) (path string, found bool) {
	switch value := value.(type) {
	case Fields:
		return find(map[string]any(value), address)
	case map[string]any:
		if reflect.ValueOf(value).Pointer() == address {
			return "", true
		}
		for key, item := range value {
			if rest, found := find(item, address); found {
				return "." + key + rest, true
			}
		}
	case []any:
		for i, item := range value {
			if rest, found := find(item, address); found {
				return fmt.Sprintf("[%d]", i) + rest, true
			}
		}
	}
	return "", false
}
