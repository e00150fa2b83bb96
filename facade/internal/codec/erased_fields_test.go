package codec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

func TestErased(t *testing.T) {
	list := func(items ...any) []any { return items }
	for name, tc := range map[string]struct {
		reason string
		spec   object
		into   client.Object
		want   []string
	}{
		"Known": {"known fields are not reported",
			object{"nodeName": "n", "containers": list(object{"name": "c"})}, nil, nil},
		"Absent": {"a field that the type does not have is reported",
			object{"novel": object{"a": "b"}}, nil, []string{"spec.novel"}},
		"Zero": {"an unknown field is reported even with a zero value", object{"novel": false, "other": object{}}, nil,
			[]string{"spec.novel", "spec.other"}},
		"OmitEmpty": {"a known omitempty field with a zero value is not reported", object{
			"hostNetwork": false, "nodeName": "", "securityContext": object{}, "tolerations": list(), "volumes": nil,
		}, nil, nil},
		"Items": {"an unknown field in list items is reported once", object{"containers": list(
			object{"name": "c", "novel": "x"}, object{"name": "d", "novel": "y", "tty": false},
		)}, nil, []string{"spec.containers.novel"}},
		"Dotted": {"a key with dots is quoted", object{"a.b": "c"}, nil, []string{`spec."a.b"`}},
		"Canonical": {"a quantity in another notation is not reported", object{"containers": list(object{
			"name": "c", "resources": object{"limits": object{"cpu": "1000m"}},
		})}, nil, nil},
		"Misfit": {"a value that does not fit into its field is reported", object{"nodeName": int64(1)}, nil,
			[]string{"spec.nodeName"}},
		"OwnEncoding": {"a field that a type with its own encoding drops is reported even with a zero value",
			object{"versions": list(object{"schema": object{"openAPIV3Schema": object{
				"additionalProperties": object{"novel": ""},
			}}})}, &apiextensionsv1.CustomResourceDefinition{},
			[]string{"spec.versions.schema.openAPIV3Schema.additionalProperties.novel"}},
		"Free": {"a field of any type loses nothing, at any depth",
			object{"free": list(object{"a": object{"b": object{"c": ""}}})}, &listing{}, nil},
		"Unstructured": {"an unstructured object loses nothing", object{"novel": "x"}, &unstructured.Unstructured{},
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			into := tc.into
			if into == nil {
				into = &corev1.Pod{}
			}
			got := codec.ErasedFields(pod(tc.spec), into, func(key string) bool { return key == "spec" })
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
