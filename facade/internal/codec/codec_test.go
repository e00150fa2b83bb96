package codec_test

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

type object = map[string]any

func pods() *codec.Codec[*corev1.Pod] { return codec.New[*corev1.Pod](reflect.TypeFor[corev1.Pod]()) }

func pod(spec object) object {
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec,
	}
}

func TestDecodeErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   object
		want   string
	}{
		"Nested": {
			reason: "the error names the object and the innermost field",
			spec:   object{"containers": []any{object{"name": "a"}, object{"name": int64(1)}}},
			want: "object ns/p does not fit into *v1.Pod: field spec.containers.1.name: number cannot be decoded " +
				"into a Go string",
		},
		"TooLarge": {
			reason: "a number that the field cannot hold does not fit",
			spec:   object{"priority": int64(1) << 40},
			want:   "field spec.priority",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := pod(tc.spec)
			vectors.Unchanged(t, body)
			_, err := pods().Decode(body)
			var undecodable interface{ Undecodable() bool }
			if !errors.As(err, &undecodable) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
			if old, err := pods().DecodeOld(body); err == nil || old.Name != "p" {
				t.Errorf("the other fields of an old state must be decoded: got %q, %v", old.Name, err)
			}
		})
	}
}

func TestDecodeForFilterGivesCopies(t *testing.T) {
	c, what := pods(), &cause.Cause{Object: jsontext.NewFromValue(pod(object{"nodeName": "n",
		"nodeSelector": object{"k": "v"}}))}
	first, err := c.DecodeForFilter(what)
	if err != nil {
		t.Fatal(err)
	}
	first.Spec.NodeName, first.Spec.NodeSelector["k"] = "changed", "changed"
	second, err := c.DecodeForFilter(what)
	if err != nil || second.Spec.NodeName != "n" || second.Spec.NodeSelector["k"] != "v" {
		t.Errorf("one filter sees the changes of another: %+v, %v", second.Spec, err)
	}
}

func TestTransform(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(p *corev1.Pod)
		want   object
		err    string
	}{
		"Field": {
			reason: "unknown fields survive, and the name and uid do not change",
			change: func(p *corev1.Pod) { p.Spec.NodeName, p.Name, p.UID = "n", "other", "other" },
			want:   pod(object{"future": true, "nodeName": "n"}),
		},
		"Nothing": {
			reason: "an empty change adds no fields", change: func(*corev1.Pod) {},
			want: pod(object{"future": true}),
		},
		"Panic": {
			reason: "a panic is an error and leaves the object unchanged", change: func(*corev1.Pod) { panic("boo") },
			want: pod(object{"future": true}), err: "panic: boo",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := pod(object{"future": true})
			err := pods().Transform(tc.change, codec.Lists{})(body)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.err)
			}
			if d := cmp.Diff(tc.want, body); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// statefulObject is an object with private state that only its own package can copy, as with generated code.
type statefulObject struct {
	corev1.ConfigMap

	Spec struct {
		state []string
		Hosts []string
	}
}

func (s *statefulObject) DeepCopyObject() runtime.Object {
	copied := *s
	copied.ConfigMap = *s.ConfigMap.DeepCopy()
	copied.Spec.Hosts = append([]string(nil), s.Spec.Hosts...)
	return &copied
}

// promotedFields inherits DeepCopyObject from an embedded type, which copies only that part.
type promotedFields struct {
	corev1.ConfigMap

	Hosts []string
}

func TestCopySharesNothing(t *testing.T) {
	object := &statefulObject{}
	object.Spec.state, object.Spec.Hosts = []string{"x"}, []string{"a"}
	copied := codec.New[*statefulObject](reflect.TypeFor[statefulObject]()).Copy(object)
	copied.Spec.Hosts[0] = "b"
	if object.Spec.Hosts[0] != "a" || copied.Spec.state[0] != "x" {
		t.Errorf("a type with private state must be copied with its own method: got %v, %v", object.Spec, copied.Spec)
	}
	part := &promotedFields{Hosts: []string{"a"}}
	codec.New[*promotedFields](reflect.TypeFor[promotedFields]()).Copy(part).Hosts[0] = "b"
	raw := &unstructured.Unstructured{Object: map[string]any{"n": 5, "l": []any{"a"}}} // an int, as literals are
	list, _ := codec.New[*unstructured.Unstructured](reflect.TypeFor[unstructured.Unstructured]()).
		Copy(raw).Object["l"].([]any)
	list[0] = "b"
	if raw.Object["l"].([]any)[0] != "a" || part.Hosts[0] != "a" {
		t.Errorf("a change of the copy changes the original: %v, %v", part, raw)
	}
}

// TestCopyOfForeignValues shows that a value that is not of JSON does not prevent a copy of an unstructured object. The
// value becomes JSON when the object is written.
func TestCopyOfForeignValues(t *testing.T) {
	object := &unstructured.Unstructured{Object: object{
		"spec": object{"address": netip.MustParseAddr("10.0.0.1"), "hosts": []any{"a"}},
	}}
	copied := codec.New[*unstructured.Unstructured](reflect.TypeFor[unstructured.Unstructured]()).Copy(object)
	copied.Object["spec"].(map[string]any)["hosts"].([]any)[0] = "b"
	if d := cmp.Diff([]any{"a"}, object.Object["spec"].(map[string]any)["hosts"]); d != "" {
		t.Errorf("the copy shares a list with the object: -want, +got:\n%s", d)
	}
	if got := copied.Object["spec"].(map[string]any)["address"]; got != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("the copy has the address %v", got)
	}
}
