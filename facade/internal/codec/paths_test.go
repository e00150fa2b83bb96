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
		"Unknown":    {reason: "a slip", path: "spec.nodeNumber", want: `v1.Pod has no "spec.nodeNumber"`},
		"Missing":    {reason: "a letter is missing", path: "spec.nodName", want: "did you mean spec.nodeName?"},
		"Swapped":    {reason: "two changed places", path: "spec.ndoeName", want: "did you mean spec.nodeName?"},
		"Ending":     {reason: "this is no guess", path: "spec.hostnaming", want: `has no "spec.hostnaming"`},
		"Participle": {reason: "another ending", path: "spec.hostnameing", want: "did you mean spec.hostname?"},
		"Capitals":   {reason: "JSON's names are not Go's", path: "spec.HostIPC", want: "did you mean spec.hostIPC?"},
		"Above":      {reason: "the rest of the path stays", path: "sepc.nodeName", want: "mean spec.nodeName?"},
		"List":       {reason: "no key leads into a list", path: "spec.containers.0", want: "compared as a whole"},
		"Quotes":     {reason: "they have to end", path: `metadata.labels."a.b`, want: "double quotes"},
		"Escape":     {reason: "the quote is a part of the key", path: `spec."a\"`, want: "double quotes"},
		"Empty":      {reason: "a key has at least one character", path: "spec..x", want: "a key is empty"},
		"EmptyQuote": {reason: "the same in quotes", path: `spec.""`, want: "a key is empty"},
		"DottedLabel": {
			reason: "labels are texts, so a path into one means its key",
			path:   "metadata.labels.app.kubernetes.io/name",
			want:   `quote keys with dots: metadata.labels."app.kubernetes.io/name"`,
		},
		"DottedKey": {
			reason: "the same in any mapping of texts", path: "spec.nodeSelector.kubernetes.io/os",
			want: `its type is string; quote keys with dots: spec.nodeSelector."kubernetes.io/os"`,
		},
		"Mapping":  {reason: "a mapping has any keys", path: `metadata.labels."a.b/c"`},
		"Embedded": {reason: "embedded fields are fields of the object", path: "kind"},
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
		t.Errorf("bytes are texts in JSON: %v", err)
	}
	raw := codec.New[*unstructured.Unstructured](reflect.TypeFor[unstructured.Unstructured]())
	if err := raw.CheckField([]string{"any", "thing"}); err != nil {
		t.Errorf("objects without a Go type have any fields: %v", err)
	}
}

func TestCheckPart(t *testing.T) {
	pods := codec.New[*corev1.Pod](reflect.TypeFor[corev1.Pod]())
	if err := pods.CheckPart(diff.Path{"spec", "containers", "env"}); err != nil {
		t.Errorf("a path through a list means the list: %v", err)
	}
	if err := pods.CheckPart(diff.Path{"spec", "contaners", "env"}); err == nil {
		t.Error("a slip is found nevertheless, but there is no error")
	}
}

func TestCheckValue(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   diff.Path
		value  any
		want   string
	}{
		"TextForNumber": {"it never matches", diff.Path{"spec", "priority"}, "10",
			"field spec.priority of v1.Pod never has this value: string cannot be decoded into a Go int32"},
		"Fraction":      {"the field holds integers", diff.Path{"spec", "priority"}, 1.5, "never has this value"},
		"TooLarge":      {"it has 32 bits", diff.Path{"spec", "priority"}, int64(1) << 40, "never has this value"},
		"NumberInText":  {"they are texts", diff.Path{"metadata", "labels", "a"}, int64(1), "never has this value"},
		"TextForBool":   {"it never matches", diff.Path{"spec", "hostIPC"}, "true", "never has this value"},
		"TextForList":   {"it never matches", diff.Path{"spec", "containers"}, "a", "never has this value"},
		"NoTime":        {"the type says so itself", diff.Path{"status", "startTime"}, "today", "never has this value"},
		"Number":        {"it can be", diff.Path{"spec", "priority"}, int64(10), ""},
		"WholeFraction": {"JSON has one type of numbers", diff.Path{"spec", "priority"}, 10.0, ""},
		"Text":          {"it can be", diff.Path{"spec", "nodeName"}, "10", ""},
		"Mapping":       {"it can be", diff.Path{"spec", "securityContext"}, map[string]any{"runAsUser": int64(1)}, ""},
		"Time":          {"the type says so itself", diff.Path{"status", "startTime"}, "2026-01-01T00:00:00Z", ""},
		"Quantity":      {"it is a text", diff.Path{"spec", "overhead", "cpu"}, "10m", ""},
		"NoField":       {"that is for CheckField", diff.Path{"spec", "nothing"}, "10", ""},
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
