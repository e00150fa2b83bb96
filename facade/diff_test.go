package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

type mapping = map[string]any

// TestTouches shows which changes touch a path.
func TestTouches(t *testing.T) {
	nodes := mapping{"spec": mapping{"nodes": mapping{"count": int64(3)}, "owner": "ann"}}
	labels := func(all mapping) mapping { return mapping{"metadata": mapping{"labels": all}} }
	cases := map[string]struct {
		reason        string
		before, after any
		path          string
		want          bool
	}{
		"other": {
			"a change of another field does not touch the path",
			nodes, with(nodes, "spec", "owner", "bob"), "spec.nodes", false},
		"sibling": {
			"a change of a key that is a prefix does not touch the path",
			nodes, with(nodes, "spec", "nod", 1), "spec.nodes", false},
		"unknown":    {"an absent field is not touched", nil, nodes, "spec.disks", false},
		"no mapping": {"a path into a string is not touched", nil, nodes, "spec.owner.name", false},
		"null": {
			"an added null does not touch the path", nil, mapping{"spec": mapping{"nodes": nil}}, "spec.nodes", false},
		"itself": {"a changed field is touched", nodes, with(nodes, "spec", "nodes", "none"), "spec.nodes", true},
		"inside": {
			"a change inside the field touches it", nodes, with(nodes, "spec", "nodes", mapping{}), "spec.nodes", true},
		"outside": {
			"a change of the parent touches the field",
			nodes, with(nodes, "spec", "nodes", 1), "spec.nodes.count", true},
		"creation": {"a creation touches the fields of the object", nil, nodes, "spec.nodes.count", true},
		"gone":     {"a removal of the parent touches the field", nodes, mapping{}, "spec.nodes", true},
		"dotted": {"a quoted key with dots is touched", labels(nil), labels(mapping{"a.b/c": "x"}),
			kopf.FieldPath("metadata", "labels", "a.b/c"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := kopf.Diff(diff.Compute(tc.before, tc.after)).Touches(tc.path); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
	hidden := kopf.Diff{{Op: diff.Add, Path: diff.Path{"spec"}}}
	if !hidden.Touches("spec.nodes") || hidden.Touches("status") {
		t.Error("a diff item without values touches all paths below its own, and no others")
	}
}

// with returns a copy in which one key of one section has another value.
func with(object mapping, section, key string, value any) mapping {
	changed, _ := diff.DeepCopy(object).(mapping)
	changed[section].(mapping)[key] = value
	return changed
}

// TestTouchesWithInvalidPath shows that an invalid path fails the handler.
func TestTouchesWithInvalidPath(t *testing.T) {
	for path, want := range map[string]string{
		"spec..nodes":                          "Diff.Touches: invalid path spec..nodes: a key is empty",
		"metadata.labels.app.kubernetes.io/id": "quote keys with dots",
	} {
		op := newCreationOperator(func(_ context.Context, c *Change) error { c.Diff.Touches(path); return nil })
		a := call(t, op, body(nil), nil)
		if a.Outcome.Err == nil || !strings.Contains(a.Outcome.Err.Error(), want) {
			t.Errorf("Touches(%q) fails the handler: got %v, want %q", path, a.Outcome.Err, want)
		}
	}
}

// TestDiffsOfFields shows that the diff of a field handler is relative to its field.
func TestDiffsOfFields(t *testing.T) {
	var touched []bool
	before, after := mapping{"spec": mapping{"size": int64(1)}}, mapping{"spec": mapping{"size": int64(2)}}
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).OnField("fn", "spec", func(_ context.Context, c *Change) error {
		touched = []bool{c.Diff.Touches("size"), c.Diff.Touches("spec.size"), c.Diff[0].Path.HasPrefix("size")}
		return nil
	})
	call(t, op, body(mapping{"size": int64(2)}), before, func(a *execution.Attempt) {
		a.Call.Cause = cause.Detect(cause.Observation{Body: a.Call.Object, Old: before, New: after})
	})
	if len(touched) != 3 || !touched[0] || touched[1] || !touched[2] {
		t.Errorf("paths are relative to the field of the handler: got %v", touched)
	}
}
