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

// dynamic is an object with values of all kinds.
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

// read is At of some type, for tables.
func read[V any](path string) func(o *kopf.Unstructured) (any, error) {
	return func(o *kopf.Unstructured) (any, error) { return kopf.GetField[V](o, path) }
}

func TestAt(t *testing.T) {
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
		"int":            {"as most numbers are", read[int]("spec.size"), 3},
		"int32":          {"of any size that holds it", read[int32]("spec.size"), int32(3)},
		"int64":          {"floats would round it", read[int64]("spec.big"), int64(9007199254740993)},
		"float":          {"", read[float64]("spec.share"), 0.5},
		"float of int":   {"JSON has one kind of numbers", read[float64]("spec.size"), 3.0},
		"int of float":   {"the same", read[int]("spec.whole"), 2},
		"bool":           {"", read[bool]("spec.on"), true},
		"string":         {"", read[string]("spec.name"), "s3cret"},
		"time":           {"as Kubernetes writes it", read[time.Time]("spec.at"), moment},
		"metav1.Time":    {"its type does as well", read[metav1.Time]("spec.at"), metav1.NewTime(moment)},
		"duration":       {"with its units", read[time.Duration]("spec.every"), 90 * time.Minute},
		"slice":          {"", read[[]string]("spec.tags"), []string{"a", "b"}},
		"structs":        {"by their json tags", read[[]part]("spec.parts"), []part{{"p", 2}}},
		"map":            {"", read[map[string]string]("spec.extra"), map[string]string{"k": "v"}},
		"empty":          {"it is there", read[map[string]any]("spec.empty"), map[string]any{}},
		"any":            {"as it is", read[any]("spec.size"), int64(3)},
		"key with dots":  {"in quotes", read[string](`metadata.labels."app.kubernetes.io/name"`), "db"},
		"the whole spec": {"a path may be one key", read[small]("spec"), small{3}},
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

func TestAtFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		read   func(o *kopf.Unstructured) (any, error)
		want   string
		absent bool
	}{
		"absent":       {"one asks for that", read[int]("spec.none"), "there is no value", true},
		"null":         {"it is nothing", read[int]("spec.null"), "there is no value", true},
		"below absent": {"so there is nothing in it", read[int]("spec.none.of.it"), "there is no value", true},
		"below null":   {"nor in a null", read[int]("spec.null.x"), "there is no value", true},
		"a string":     {"it may be secret", read[int]("spec.name"), "as int: it is a string", false},
		"a number":     {"", read[string]("spec.size"), "as string: it is the number 3", false},
		"a bool":       {"", read[string]("spec.on"), "it is the bool true", false},
		"a mapping":    {"", read[string]("spec.extra"), "it is a mapping of 1 keys", false},
		"a list":       {"", read[string]("spec.tags"), "it is a list of 2 items", false},
		"a fraction":   {"no int holds it", read[int]("spec.share"), "it is the number 0.5", false},
		"too large":    {"a wrapped one is wrong", read[int8]("spec.big"), "as int8: it is the number 9", false},
		"negative":     {"as above", read[uint]("metadata.generation"), "", false},
		"in a list":    {"", read[[]int]("spec.tags"), "as []int: it is a list of 2 items: string cannot be", false},
		"in a struct": {"its time is none", read[struct {
			Name time.Time `json:"name"`
		}]("spec"), "it is a mapping of", false},
		"in a scalar":  {"", read[int]("spec.size.x"), "spec.size is the number 3: it has no keys", false},
		"into a list":  {"an index is no path", read[string]("spec.tags.0"), "spec.tags is a list of 2 items", false},
		"no duration":  {"", read[time.Duration]("spec.name"), "not a duration", false},
		"without unit": {"3 what?", read[time.Duration]("spec.size"), `a string with a unit, such as "5m"`, false},
		"no time":      {"", read[time.Time]("spec.name"), "as time.Time: it is a string", false},
		"no path":      {"", read[int](""), "a key is empty", false},
		"open quotes":  {"", read[int](`spec."a`), "double quotes", false},
		"unquoted dots": {
			"one is told", read[string]("metadata.labels.app.kubernetes.io/name"), "quote keys with dots", false,
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
				t.Errorf("the object is named, and no text of it: %v", err)
			}
		})
	}
	if _, err := kopf.GetField[int](nil, "spec.size"); !errors.Is(err, kopf.ErrNoValue) {
		t.Errorf("nil has no values, got %v", err)
	}
}

func TestAtOr(t *testing.T) {
	for path, want := range map[string]int{"spec.size": 3, "spec.none": 7, "spec.name": 7, "spec..": 7} {
		if got := kopf.GetFieldOr(dynamic(), path, 7); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

func TestAtGivesCopies(t *testing.T) {
	object := dynamic()
	for _, path := range []string{"spec.extra", "spec.empty"} {
		value, err := kopf.GetField[map[string]any](object, path)
		if err != nil {
			t.Fatal(err)
		}
		value["k"] = "tampered"
	}
	if d := cmp.Diff(dynamic(), object); d != "" {
		t.Errorf("the object is another: -want, +got:\n%s", d)
	}
}

func TestSetField(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(o *kopf.Unstructured) error
		want   string // the spec
	}{
		"new":         {"mappings are made", set("spec.a.b", 1), `{"a":{"b":1},"n":null,"o":{"k":"v"},"s":"x"}`},
		"replaced":    {"", set("spec.s", []string{"y"}), `{"n":null,"o":{"k":"v"},"s":["y"]}`},
		"beside":      {"others stay", set("spec.o.l", true), `{"n":null,"o":{"k":"v","l":true},"s":"x"}`},
		"in null":     {"it is nothing", set("spec.n.b", 1.5), `{"n":{"b":1.5},"o":{"k":"v"},"s":"x"}`},
		"struct":      {"by its json tags", set("spec.s", Part{Name: "p"}), ""},
		"quoted":      {"one key", set(`spec."a.b/c"`, "y"), `{"a.b/c":"y","n":null,"o":{"k":"v"},"s":"x"}`},
		"duration":    {"At reads it", set("spec.s", 5*time.Minute), `{"n":null,"o":{"k":"v"},"s":"5m0s"}`},
		"nil":         {"it removes", set("spec.s", nil), `{"n":null,"o":{"k":"v"}}`},
		"nil pointer": {"the same", set("spec.o.k", (*int)(nil)), `{"n":null,"o":{},"s":"x"}`},
		"nil nowhere": {"nothing is made for it", set("spec.a.b", nil), `{"n":null,"o":{"k":"v"},"s":"x"}`},
		"removed":     {"", remove("spec.o.k"), `{"n":null,"o":{},"s":"x"}`},
		"absent":      {"it need not be there", remove("spec.a.b"), `{"n":null,"o":{"k":"v"},"s":"x"}`},
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
			object.DeepCopy() // panics if there is anything in it that objects do not have
		})
	}
	empty := &rawObject{}
	if err := kopf.SetField(empty, "a.b", 1); err != nil || kopf.GetFieldOr(empty, "a.b", 0) != 1 {
		t.Errorf("an empty object can be filled: %v, error %v", empty, err)
	}
}

func TestSetFieldFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(o *kopf.Unstructured) error
		want   string
	}{
		"in a scalar":   {"that stays", set("spec.s.a", 1), "setting spec.s.a of object ns/w1: spec.s is a string"},
		"in a list":     {"an index is no path", set("spec.l.0", 1), "spec.l is a list of 1 items: it has no keys"},
		"no JSON":       {"the API server cannot be told", set("spec.s", make(chan int)), "not a JSON value"},
		"no path":       {"", set("spec..s", 1), "a key is empty"},
		"from a scalar": {"it is a mistake, too", remove("spec.s.a"), "removing spec.s.a of object ns/w1: spec.s is a"},
		"from no path":  {"", remove(""), "a key is empty"},
		"nil": {
			"",
			func(*kopf.Unstructured) error { return kopf.SetField(nil, "a", 1) },
			"the object is nil",
		},
		"from nil": {
			"",
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
				t.Errorf("the object was changed: -want, +got:\n%s", d)
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
