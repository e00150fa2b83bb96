package compact_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

type marshaler interface{ Marshal() ([]byte, error) }

func messageOf(t *testing.T, object any) []byte {
	t.Helper()
	marshals, is := object.(marshaler)
	if !is {
		t.Fatalf("%T has no message", object)
	}
	message, err := marshals.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func podOf(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Namespace: "s", UID: "u", ResourceVersion: "7", Labels: map[string]string{"tier": "web"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}, {Manager: "n"}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c"}}},
	}
	change(pod)
	return pod
}

// TestMessages shows which parts of a protobuf message are known without decoding it, and that it is decoded unchanged
// except for managed fields.
func TestMessages(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*corev1.Pod)
		known  expectedMetadata
		ends   bool
	}{
		"Whole": {"an ordinary object keeps everything but managed fields",
			func(*corev1.Pod) {}, expectedMetadata{"n", "s", "7", "u", false}, false},
		"Nothing": {"a bookmark does not have a name", func(p *corev1.Pod) { *p = corev1.Pod{} }, expectedMetadata{},
			false},
		"Deleting": {"an object with a deletion timestamp is being deleted", func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, expectedMetadata{"n", "s", "7", "u", true}, false},
		"End": {"a bookmark with the annotation ends a listing", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a": "true", metav1.InitialEventsAnnotationKey: "true", "b": "true"}
		}, expectedMetadata{"n", "s", "7", "u", false}, true},
		"Others": {"another annotation does not end a listing", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a": "true"}
		}, expectedMetadata{"n", "s", "7", "u", false}, false},
		"NoEnd": {"the annotation with another value does not end a listing", func(p *corev1.Pod) {
			p.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "false"}
		}, expectedMetadata{"n", "s", "7", "u", false}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podOf(tc.change)
			message := messageOf(t, pod)
			o, err := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind)).NewFromMessage(message)
			if err != nil {
				t.Fatal(err)
			}
			clear(message) // the caller may reuse it
			if d := cmp.Diff(tc.known, metadataOf(o)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			if ends := o.GetObjectMeta().GetAnnotations() != nil; ends != tc.ends {
				t.Errorf("%s: ends a listing: %v", tc.reason, ends)
			}
			pod.ManagedFields = nil
			pod.SetGroupVersionKind(podKind)
			opened, err := o.Open()
			var got corev1.Pod
			if err != nil || !opened.DecodeInto(&got) {
				t.Fatal("not decodable", err)
			}
			if d := cmp.Diff(pod, &got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestMessagesAsJSON shows that a message can be read as JSON, and as other Go types.
func TestMessagesAsJSON(t *testing.T) {
	pod := podOf(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
	message := messageOf(t, pod)
	o, err := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind)).NewFromMessage(message)
	if err != nil {
		t.Fatal(err)
	}
	pod.ManagedFields = nil
	pod.SetGroupVersionKind(podKind)
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := o.Open()
	if err != nil {
		t.Fatal(err)
	}
	body, err := opened.Value()
	if d := cmp.Diff(want, body); d != "" || err != nil {
		t.Errorf("%v: -want, +got:\n%s", err, d)
	}
	var metadata metav1.PartialObjectMetadata
	if !opened.DecodeInto(&metadata) || metadata.Name != "n" || metadata.Kind != "Pod" {
		t.Errorf("unexpected metadata: %v", metadata)
	}
	var node corev1.Node // which has messages of another form
	if !opened.DecodeInto(&node) || node.Name != "n" || node.Spec.PodCIDR != "" {
		t.Errorf("unexpected node: %v", node)
	}
	labels := opened.MappingAt("metadata", "labels")
	if d := cmp.Diff(map[string]any{"tier": "web"}, labels); d != "" {
		t.Errorf("labels: -want, +got:\n%s", d)
	}
	if node := opened.StringAt("spec", "nodeName"); node != "node-1" {
		t.Errorf("unexpected node name %q", node)
	}
}

// extendedPod has the methods of a pod, and a field that they do not cover.
type extendedPod struct {
	corev1.Pod `json:",inline"`

	Extra string `json:"more"`
}

func (m *extendedPod) DeepCopyObject() runtime.Object { return m }

// TestKinds shows that only kinds whose Go type is generated, not a list or a wrapper, are decoded from messages.
func TestKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "example.org", Version: "v1"}
	scheme.AddKnownTypeWithName(group.WithKind("Mine"), &extendedPod{})
	scheme.AddKnownTypeWithName(group.WithKind("Map"), &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(group.WithKind("Pod"), &corev1.Pod{})
	scheme.AddKnownTypeWithName(group.WithKind("List"), &corev1.PodList{})
	for name, want := range map[string]bool{"Mine": false, "Map": false, "Pod": true, "List": false, "Unknown": false} {
		kind := compact.KindOf(scheme, group.WithKind(name))
		if kind != nil != want {
			t.Errorf("%s has messages: %v", name, kind != nil)
		}
		for _, typ := range []reflect.Type{reflect.TypeFor[corev1.Pod](), reflect.TypeFor[*corev1.Pod]()} {
			if kind.MatchesType(typ) != want {
				t.Errorf("%s is a %s: %v", name, typ, !want)
			}
		}
		if kind.MatchesType(nil) || kind.MatchesType(reflect.TypeFor[corev1.Node]()) ||
			kind.MatchesType(reflect.TypeFor[*corev1.Node]()) {
			t.Errorf("%s is taken for another type", name)
		}
	}
}

// TestAllKindsOfKubernetes shows that the messages of all kinds known to client-go can be packed and decoded.
func TestAllKindsOfKubernetes(t *testing.T) {
	count := 0
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		made, err := clientgoscheme.Scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		object, is := made.(client.Object)
		if !is || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		kind := compact.KindOf(clientgoscheme.Scheme, gvk)
		if kind == nil || kind.GroupVersionKind() != gvk {
			t.Errorf("%s does not have messages", gvk)
			continue
		}
		object.SetName("n")
		object.SetNamespace("s")
		object.SetUID("u")
		object.SetResourceVersion("7")
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		o, err := compact.NewPacker(kind).NewFromMessage(messageOf(t, object))
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		object.SetManagedFields(nil)
		object.GetObjectKind().SetGroupVersionKind(gvk)
		opened, err := o.Open()
		got := reflect.New(reflect.TypeOf(object).Elem()).Interface()
		if err != nil || !opened.DecodeInto(got) {
			t.Errorf("%s cannot be decoded: %v", gvk, err)
			continue
		}
		if d := cmp.Diff(object, got); d != "" {
			t.Errorf("%s: -want, +got:\n%s", gvk, d)
		}
		if d := cmp.Diff(expectedMetadata{"n", "s", "7", "u", false}, metadataOf(o)); d != "" {
			t.Errorf("%s: -want, +got:\n%s", gvk, d)
		}
		count++
	}
	if count < 50 {
		t.Errorf("found only %d kinds", count)
	}
}

// TestMalformedMessages shows that a malformed message is refused.
func TestMalformedMessages(t *testing.T) {
	kind := compact.KindOf(clientgoscheme.Scheme, podKind)
	for _, message := range []string{"\x0a", "\x0a\x05x", "\x0a\x02\x0a\x05", "\x07"} {
		if _, err := compact.NewPacker(kind).NewFromMessage([]byte(message)); err == nil {
			t.Errorf("%q was accepted as an object", message)
		}
	}
}

// TestUndecodableMessages shows that a malformed message is accepted, and that decoding it returns an error with the
// name of the object.
func TestUndecodableMessages(t *testing.T) {
	pod := podOf(func(p *corev1.Pod) { p.ManagedFields = nil })
	message := strings.Replace(string(messageOf(t, pod)), "\x52\x06node-1", "\x52\x07node-1", 1)
	o, err := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind)).NewFromMessage([]byte(message))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := o.Open()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if body, err := opened.Value(); err == nil || !strings.Contains(err.Error(), "s/n") {
			t.Errorf("got %v, %v", body, err)
		}
	}
	if opened.DecodeInto(&corev1.Pod{}) || opened.Text() != nil {
		t.Error("a malformed message was decoded")
	}
	if text, err := o.Text(); err == nil {
		t.Errorf("got %s", text)
	}
}

// TestMentions shows that the presence of words can be checked without decoding an object, in both forms.
func TestMentions(t *testing.T) {
	message, err := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind)).NewFromMessage(
		messageOf(t, podOf(func(p *corev1.Pod) { p.Finalizers = []string{"example.org/x"} })),
	)
	if err != nil {
		t.Fatal(err)
	}
	text, err := compact.New([]byte(`{"metadata":{"name":"n","finalizers":["example.org/x"]}}`), metav1.TypeMeta{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []*compact.CachedObject{message, text} {
		if !o.MayMention("nothing", "example.org/x") || o.MayMention("nothing", "example.org/y") || o.MayMention() {
			t.Error("only the word in the object must be found")
		}
	}
}

// FuzzMessages checks that an object keeps everything that a decoder finds in it, except for managed fields.
func FuzzMessages(f *testing.F) {
	pod := podOf(func(*corev1.Pod) {})
	seed, err := pod.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte("\x0a\x00"))
	kind := compact.KindOf(clientgoscheme.Scheme, podKind)
	f.Fuzz(func(t *testing.T, message []byte) {
		o, err := compact.NewPacker(kind).NewFromMessage(message)
		var want corev1.Pod
		if want.Unmarshal(message) != nil {
			return // only a panic would be wrong
		}
		if err != nil { // some decoders accept more than they would write
			if o, err = compact.NewPacker(kind).NewFromMessage(messageOf(t, &want)); err != nil {
				t.Fatalf("%q: %v", message, err)
			}
		}
		want.ManagedFields = nil
		want.SetGroupVersionKind(podKind)
		var got corev1.Pod
		opened, err := o.Open()
		if err != nil || !opened.DecodeInto(&got) {
			t.Fatalf("%q: %v", message, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: -want, +got:\n%s", message, d)
		}
	})
}

// TestMessageWithoutMetadata shows that a message without metadata does not get those of a message packed before it
// into the same buffer.
func TestMessageWithoutMetadata(t *testing.T) {
	packer := compact.NewPacker(compact.KindOf(clientgoscheme.Scheme, podKind))
	named := messageOf(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}})
	for range 3 { // the buffer may change
		if _, err := packer.NewFromMessage(named); err != nil {
			t.Fatal(err)
		}
		o, err := packer.NewFromMessage(nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := o.Text(); o.GetName()+string(o.GetUID()) != "" || err != nil {
			t.Errorf("unexpected name %q and uid %q; the text is %s, %v", o.GetName(), o.GetUID(), text, err)
		}
	}
}
