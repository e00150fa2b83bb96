package codec_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
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
			reason: "a number that the field cannot hold does not fit, either",
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
				t.Errorf("the rest of an old state is there: got %q, %v", old.Name, err)
			}
		})
	}
}

func TestDecodeForFilterGivesCopies(t *testing.T) {
	c, what := pods(), &cause.Cause{Body: pod(object{"nodeName": "n", "nodeSelector": object{"k": "v"}})}
	first, err := c.DecodeForFilter(what)
	if err != nil {
		t.Fatal(err)
	}
	first.Spec.NodeName, first.Spec.NodeSelector["k"] = "changed", "changed"
	second, err := c.DecodeForFilter(what)
	if err != nil || second.Spec.NodeName != "n" || second.Spec.NodeSelector["k"] != "v" {
		t.Errorf("one filter sees what another has changed: %+v, %v", second.Spec, err)
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
			reason: "fields that the type does not have survive, and the identity stays",
			change: func(p *corev1.Pod) { p.Spec.NodeName, p.Name, p.UID = "n", "other", "other" },
			want:   pod(object{"future": true, "nodeName": "n"}),
		},
		"Nothing": {
			reason: "the encoding of the type adds nothing", change: func(*corev1.Pod) {},
			want: pod(object{"future": true}),
		},
		"Panic": {
			reason: "the object stays as it was", change: func(*corev1.Pod) { panic("boo") },
			want: pod(object{"future": true}), err: "panic: boo",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := pod(object{"future": true})
			err := pods().Transform(tc.change)(body)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.err)
			}
			if d := cmp.Diff(tc.want, body); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
