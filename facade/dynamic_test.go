package kopf_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// dynamic returns an object with values of all JSON types.
func dynamic() *kopf.Unstructured {
	object := body(map[string]any{
		"size": int64(3), "share": 0.5, "whole": 2.0, "big": int64(9007199254740993), "name": "s3cret", "on": true,
		"null": nil, "at": "2024-05-06T07:08:09Z", "every": "1h30m", "tags": []any{"a", "b"},
		"parts": []any{map[string]any{"name": "p", "count": int64(2)}}, "empty": map[string]any{},
		"extra": map[string]any{"k": "v"},
	})
	metadata, _ := object["metadata"].(map[string]any)
	metadata["labels"] = map[string]any{"app.kubernetes.io/name": "db"}
	return &rawObject{Object: object}
}

// read returns a call of GetField with a type, for tables.
func read[V any](path string) func(o *kopf.Unstructured) (any, error) {
	return func(o *kopf.Unstructured) (any, error) { return kopf.GetField[V](o, path) }
}

// TestGetField shows that GetField reads a value as many Go types.
func TestGetField(t *testing.T) {
	type part struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	type small struct {
		Size int `json:"size"`
	}
	moment := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	cases := map[string]struct {
		reason string
		read   func(o *kopf.Unstructured) (any, error)
		want   any
	}{
		"int":   {"an integer is read as int", read[int]("spec.size"), 3},
		"int32": {"an integer that fits is read as int32", read[int32]("spec.size"), int32(3)},
		"int64": {
			"a large integer is read without rounding", read[int64]("spec.big"), int64(9007199254740993)},
		"float":        {"a fraction is read as float64", read[float64]("spec.share"), 0.5},
		"float of int": {"an integer is read as float64", read[float64]("spec.size"), 3.0},
		"int of float": {"a whole float is read as int", read[int]("spec.whole"), 2},
		"bool":         {"a boolean is read as bool", read[bool]("spec.on"), true},
		"string":       {"a string is read as string", read[string]("spec.name"), "s3cret"},
		"time":         {"a timestamp is read as time.Time", read[time.Time]("spec.at"), moment},
		"metav1.Time":  {"a timestamp is read as metav1.Time", read[metav1.Time]("spec.at"), metav1.NewTime(moment)},
		"duration": {
			"a string with a unit is read as time.Duration", read[time.Duration]("spec.every"), 90 * time.Minute},
		"slice":   {"a list is read as a slice", read[[]string]("spec.tags"), []string{"a", "b"}},
		"structs": {"structs are read by their JSON tags", read[[]part]("spec.parts"), []part{{"p", 2}}},
		"map": {
			"a mapping is read as a map", read[map[string]string]("spec.extra"), map[string]string{"k": "v"}},
		"empty": {"an empty mapping is a value", read[map[string]any]("spec.empty"), map[string]any{}},
		"any":   {"the type any returns the value unchanged", read[any]("spec.size"), int64(3)},
		"key with dots": {
			"a quoted key can have dots", read[string](`metadata.labels."app.kubernetes.io/name"`), "db"},
		"the whole spec": {"a path can be a single key", read[small]("spec"), small{3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.read(dynamic())
			if d := cmp.Diff(tc.want, got); d != "" || err != nil {
				t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, err, d)
			}
		})
	}
}

// TestGetFieldFails shows the errors of GetField, which distinguish absent values from values of other types.
func TestGetFieldFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		read   func(o *kopf.Unstructured) (any, error)
		want   string
		absent bool
	}{
		"absent": {"an absent field has no value", read[int]("spec.none"), "there is no value", true},
		"null":   {"a null has no value", read[int]("spec.null"), "there is no value", true},
		"below absent": {
			"a path below an absent field has no value", read[int]("spec.none.of.it"), "there is no value", true},
		"below null": {"a path below a null has no value", read[int]("spec.null.x"), "there is no value", true},
		"a string": {
			"an error about a string does not show the string",
			read[int]("spec.name"), "as int: it is a string", false},
		"a number":   {"a number is not a string", read[string]("spec.size"), "as string: it is the number 3", false},
		"a bool":     {"a boolean is not a string", read[string]("spec.on"), "it is the bool true", false},
		"a mapping":  {"a mapping is not a string", read[string]("spec.extra"), "it is a mapping of 1 keys", false},
		"a list":     {"a list is not a string", read[string]("spec.tags"), "it is a list of 2 items", false},
		"a fraction": {"a fraction is not an int", read[int]("spec.share"), "it is the number 0.5", false},
		"too large": {
			"a number that overflows its type is an error",
			read[int8]("spec.big"), "as int8: it is the number 9", false},
		"negative": {"a negative number is not unsigned", read[uint]("metadata.generation"), "", false},
		"in a list": {
			"a list item of another type is an error",
			read[[]int]("spec.tags"), "as []int: it is a list of 2 items: string cannot be", false},
		"in a struct": {"a struct field of another type is an error", read[struct {
			Name time.Time `json:"name"`
		}]("spec"), "it is a mapping of", false},
		"in a scalar": {
			"a path below a number is an error",
			read[int]("spec.size.x"), "spec.size is the number 3: it has no keys", false},
		"into a list": {
			"an index in a path is an error", read[string]("spec.tags.0"), "spec.tags is a list of 2 items", false},
		"no duration": {
			"a string that is not a duration is an error", read[time.Duration]("spec.name"), "not a duration", false},
		"without unit": {
			"a number without a unit is not a duration",
			read[time.Duration]("spec.size"), `a string with a unit, such as "5m"`, false},
		"no time": {
			"a string that is not a timestamp is an error",
			read[time.Time]("spec.name"), "as time.Time: it is a string", false},
		"no path":     {"an empty path is an error", read[int](""), "a key is empty", false},
		"open quotes": {"an open quote in a path is an error", read[int](`spec."a`), "double quotes", false},
		"unquoted dots": {
			"the error about unquoted dots suggests quotes",
			read[string]("metadata.labels.app.kubernetes.io/name"), "quote keys with dots", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := dynamic()
			metadata, _ := object.Object["metadata"].(map[string]any)
			metadata["generation"] = int64(-1)
			_, err := tc.read(object)
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, kopf.ErrNoValue) != tc.absent {
				t.Fatalf("%s: want %q, absent %t, got: %v", tc.reason, tc.want, tc.absent, err)
			}
			if !strings.Contains(err.Error(), "of object ns/w1") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error names the object and does not show its texts: got %v", err)
			}
		})
	}
	if _, err := kopf.GetField[int](nil, "spec.size"); !errors.Is(err, kopf.ErrNoValue) {
		t.Errorf("a nil object has no values: got %v", err)
	}
}

// TestGetFieldOr shows that GetFieldOr returns the default for absent and invalid values.
func TestGetFieldOr(t *testing.T) {
	for path, want := range map[string]int{"spec.size": 3, "spec.none": 7, "spec.name": 7, "spec..": 7} {
		if got := kopf.GetFieldOr(dynamic(), path, 7); got != want {
			t.Errorf("the value at %s or the default: got %d, want %d", path, got, want)
		}
	}
}

// TestGetFieldGivesCopies shows that GetField returns copies.
func TestGetFieldGivesCopies(t *testing.T) {
	object := dynamic()
	for _, path := range []string{"spec.extra", "spec.empty"} {
		value, err := kopf.GetField[map[string]any](object, path)
		if err != nil {
			t.Fatal(err)
		}
		value["k"] = "tampered"
	}
	if d := cmp.Diff(dynamic(), object); d != "" {
		t.Errorf("a change of the result does not reach the object: -want, +got:\n%s", d)
	}
}

// TestSetField shows that SetField and RemoveField change the object.
func TestSetField(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(o *kopf.Unstructured) error
		want   string // the spec
	}{
		"new": {
			"missing mappings are created", set("spec.a.b", 1), `{"a":{"b":1},"n":null,"o":{"k":"v"},"s":"x"}`},
		"replaced": {"a value is replaced", set("spec.s", []string{"y"}), `{"n":null,"o":{"k":"v"},"s":["y"]}`},
		"beside":   {"other keys are kept", set("spec.o.l", true), `{"n":null,"o":{"k":"v","l":true},"s":"x"}`},
		"in null": {
			"a null is replaced by a mapping", set("spec.n.b", 1.5), `{"n":{"b":1.5},"o":{"k":"v"},"s":"x"}`},
		"struct": {"a struct is set by its JSON tags", set("spec.s", Part{Name: "p"}), ""},
		"quoted": {
			"a quoted key with dots is one key",
			set(`spec."a.b/c"`, "y"), `{"a.b/c":"y","n":null,"o":{"k":"v"},"s":"x"}`},
		"duration": {
			"a duration is set as a string", set("spec.s", 5*time.Minute), `{"n":null,"o":{"k":"v"},"s":"5m0s"}`},
		"nil":         {"nil removes the field", set("spec.s", nil), `{"n":null,"o":{"k":"v"}}`},
		"nil pointer": {"a nil pointer removes the field", set("spec.o.k", (*int)(nil)), `{"n":null,"o":{},"s":"x"}`},
		"nil nowhere": {"nil does not create mappings", set("spec.a.b", nil), `{"n":null,"o":{"k":"v"},"s":"x"}`},
		"removed":     {"a field is removed", remove("spec.o.k"), `{"n":null,"o":{},"s":"x"}`},
		"absent":      {"removing an absent field is allowed", remove("spec.a.b"), `{"n":null,"o":{"k":"v"},"s":"x"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &rawObject{Object: body(map[string]any{"s": "x", "n": nil, "o": map[string]any{"k": "v"}})}
			if err := tc.change(object); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if tc.want == "" {
				tc.want = `{"n":null,"o":{"k":"v"},"s":{"count":0,"name":"p","notes":null}}`
			}
			if got, _ := json.Marshal(object.Object["spec"]); string(got) != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
			object.DeepCopy() // panics on values that are not JSON
		})
	}
	empty := &rawObject{}
	if err := kopf.SetField(empty, "a.b", 1); err != nil || kopf.GetFieldOr(empty, "a.b", 0) != 1 {
		t.Errorf("an empty object can be filled: %v, error %v", empty, err)
	}
}

// TestSetFieldFails shows the errors of SetField and RemoveField, after which the object is unchanged.
func TestSetFieldFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(o *kopf.Unstructured) error
		want   string
	}{
		"in a scalar": {
			"a path below a string is an error",
			set("spec.s.a", 1), "setting spec.s.a of object ns/w1: spec.s is a string"},
		"in a list": {
			"an index in a path is an error", set("spec.l.0", 1), "spec.l is a list of 1 items: it has no keys"},
		"no JSON": {"a value that is not JSON is an error", set("spec.s", make(chan int)), "not a JSON value"},
		"no path": {"an empty key in a path is an error", set("spec..s", 1), "a key is empty"},
		"from a scalar": {
			"removing a path below a string is an error",
			remove("spec.s.a"), "removing spec.s.a of object ns/w1: spec.s is a"},
		"from no path": {"removing an empty path is an error", remove(""), "a key is empty"},
		"nil": {
			"setting a field of a nil object is an error",
			func(*kopf.Unstructured) error { return kopf.SetField(nil, "a", 1) },
			"the object is nil",
		},
		"from nil": {
			"removing a field of a nil object is an error",
			func(*kopf.Unstructured) error { return kopf.RemoveField(nil, "a") },
			"the object is nil",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fresh := func() *kopf.Unstructured {
				return &rawObject{Object: body(map[string]any{"s": "x", "l": []any{"i"}})}
			}
			object := fresh()
			if err := tc.change(object); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
			if d := cmp.Diff(fresh(), object); d != "" {
				t.Errorf("a failed change keeps the object: -want, +got:\n%s", d)
			}
		})
	}
}

func set(path string, value any) func(o *kopf.Unstructured) error {
	return func(o *kopf.Unstructured) error { return kopf.SetField(o, path, value) }
}

func remove(path string) func(o *kopf.Unstructured) error {
	return func(o *kopf.Unstructured) error { return kopf.RemoveField(o, path) }
}
