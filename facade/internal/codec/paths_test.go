package codec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestCheckField(t *testing.T) {
	cases := map[string]struct {
		reason, path, want string
	}{
		"Unknown": {reason: "an unknown field is an error",
			path: "spec.nodeNumber", want: `v1.Pod has no "spec.nodeNumber"`},
		"Missing": {reason: "a missing letter suggests the right field",
			path: "spec.nodName", want: "did you mean spec.nodeName?"},
		"Swapped": {reason: "two swapped letters suggest the right field",
			path: "spec.ndoeName", want: "did you mean spec.nodeName?"},
		"Ending": {reason: "a name that differs too much gets no suggestion",
			path: "spec.hostnaming", want: `has no "spec.hostnaming"`},
		"Participle": {reason: "a wrong ending suggests the right field",
			path: "spec.hostnameing", want: "did you mean spec.hostname?"},
		"Capitals": {reason: "a Go name suggests the JSON name",
			path: "spec.HostIPC", want: "did you mean spec.hostIPC?"},
		"Above": {reason: "a wrong key above suggests the path with the rest unchanged",
			path: "sepc.nodeName", want: "mean spec.nodeName?"},
		"List": {reason: "a path into a list is an error",
			path: "spec.containers.0", want: "compared as a whole"},
		"Quotes":     {reason: "an unclosed quote is an error", path: `metadata.labels."a.b`, want: "double quotes"},
		"Escape":     {reason: "an escaped quote does not close the key", path: `spec."a\"`, want: "double quotes"},
		"Empty":      {reason: "an empty key is an error", path: "spec..x", want: "a key is empty"},
		"EmptyQuote": {reason: "an empty key in quotes is an error", path: `spec.""`, want: "a key is empty"},
		"DottedLabel": {
			reason: "a path into a label suggests to quote its key",
			path:   "metadata.labels.app.kubernetes.io/name",
			want:   `quote keys with dots: metadata.labels."app.kubernetes.io/name"`,
		},
		"DottedKey": {
			reason: "a path into a text of any mapping suggests to quote its key",
			path:   "spec.nodeSelector.kubernetes.io/os",
			want:   `its type is string; quote keys with dots: spec.nodeSelector."kubernetes.io/os"`,
		},
		"Mapping":  {reason: "a mapping accepts any key", path: `metadata.labels."a.b/c"`},
		"Embedded": {reason: "an embedded field is a field of the object", path: "kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path, err := codec.ParsePath(tc.path)
			if err == nil {
				err = codec.New[*corev1.Pod](reflect.TypeFor[corev1.Pod]()).CheckField(path)
			}
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	secrets := codec.New[*corev1.Secret](reflect.TypeFor[corev1.Secret]())
	err := secrets.CheckField(diff.Path{"data", "tls", "crt"})
	if err == nil || !strings.Contains(err.Error(), `quote keys with dots: data."tls.crt"`) {
		t.Errorf("a path into bytes must suggest to quote the key: %v", err)
	}
	raw := codec.New[*unstructured.Unstructured](reflect.TypeFor[unstructured.Unstructured]())
	if err := raw.CheckField([]string{"any", "thing"}); err != nil {
		t.Errorf("objects without a Go type must accept any field: %v", err)
	}
}

func TestCheckPart(t *testing.T) {
	pods := codec.New[*corev1.Pod](reflect.TypeFor[corev1.Pod]())
	if err := pods.CheckPart(diff.Path{"spec", "containers", "env"}); err != nil {
		t.Errorf("a path through a list must mean the list: %v", err)
	}
	if err := pods.CheckPart(diff.Path{"spec", "contaners", "env"}); err == nil {
		t.Error("an unknown field above a list is not an error")
	}
}

func TestCheckValue(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   diff.Path
		value  any
		want   string
	}{
		"TextForNumber": {"a text never matches a number", diff.Path{"spec", "priority"}, "10",
			"field spec.priority of v1.Pod never has this value: string cannot be decoded into a Go int32"},
		"Fraction": {"a fraction never matches an integer",
			diff.Path{"spec", "priority"}, 1.5, "never has this value"},
		"TooLarge": {"a number beyond 32 bits never matches an int32",
			diff.Path{"spec", "priority"}, int64(1) << 40, "never has this value"},
		"NumberInText": {"a number never matches a label",
			diff.Path{"metadata", "labels", "a"}, int64(1), "never has this value"},
		"TextForBool": {"a text never matches a boolean",
			diff.Path{"spec", "hostIPC"}, "true", "never has this value"},
		"TextForList": {"a text never matches a list", diff.Path{"spec", "containers"}, "a", "never has this value"},
		"NoTime": {"a text that is not a time never matches a time",
			diff.Path{"status", "startTime"}, "today", "never has this value"},
		"Number": {"an integer can match an integer field", diff.Path{"spec", "priority"}, int64(10), ""},
		"WholeFraction": {"a float without a fraction can match an integer field",
			diff.Path{"spec", "priority"}, 10.0, ""},
		"Text": {"a text can match a text field", diff.Path{"spec", "nodeName"}, "10", ""},
		"Mapping": {"a mapping can match a struct field",
			diff.Path{"spec", "securityContext"}, map[string]any{"runAsUser": int64(1)}, ""},
		"Time": {"an RFC 3339 text can match a time",
			diff.Path{"status", "startTime"}, "2026-01-01T00:00:00Z", ""},
		"Quantity": {"a text can match a quantity", diff.Path{"spec", "overhead", "cpu"}, "10m", ""},
		"NoField":  {"an unknown field is not an error of CheckValue", diff.Path{"spec", "nothing"}, "10", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := codec.New[*corev1.Pod](reflect.TypeFor[corev1.Pod]()).CheckValue(tc.path, tc.value)
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestFormattedPathsParse(t *testing.T) {
	for _, path := range []diff.Path{
		{"spec"}, {"metadata", "labels", "a.b/c"}, {"spec", `say "hi"`}, {"spec", `back\slash.and "quote"`},
		{"spec", `back\slash`},
	} {
		got, err := codec.ParsePath(codec.FormatPath(path))
		if err != nil {
			t.Errorf("%q as %s: %v", path, codec.FormatPath(path), err)
		}
		if d := cmp.Diff(path, got); d != "" {
			t.Errorf("%s: -want, +got:\n%s", codec.FormatPath(path), d)
		}
	}
}

// TestSetPathCreatesMaps shows that SetPath creates the maps above a value. A null above it counts as absent, also if
// it is a nil map of Go.
func TestSetPathCreatesMaps(t *testing.T) {
	for name, given := range map[string]map[string]any{
		"NoObject": nil,
		"Absent":   {},
		"Null":     {"spec": nil},
		"NilMap":   {"spec": map[string]any(nil)},
		"Present":  {"spec": map[string]any{"a": map[string]any{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := codec.SetPath(given, "spec.a.b", "c")
			want := map[string]any{"spec": map[string]any{"a": map[string]any{"b": "c"}}}
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("the value must be set: error %v; -want, +got:\n%s", err, d)
			}
		})
	}
}
