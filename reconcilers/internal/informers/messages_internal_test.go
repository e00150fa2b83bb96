package informers

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

var configMapDecoder = messageDecoder{compact.NewPacker(
	compact.KindOf(clientgoscheme.Scheme, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
)}

// encodeMessage returns the object as an API server sends it in protobuf.
func encodeMessage(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	server := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	encoder := clientgoscheme.Codecs.EncoderForVersion(server, corev1.SchemeGroupVersion)
	data, err := runtime.Encode(encoder, object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Data:       map[string]string{"a": name},
	}
}

// configMapText returns a configMap in its kept form.
func configMapText(name string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + name + `"},"data":{"a":"` + name + `"}}`
}

// TestDecodingMessages shows how the messages of objects, lists and errors are decoded.
func TestDecodingMessages(t *testing.T) {
	tests := map[string]struct {
		reason string
		sent   runtime.Object
		want   string
	}{
		"Object": {"an object is kept without its managed fields", configMap("n"), configMapText("n")},
		"List": {
			"elements of a list get the type of the kind", &corev1.ConfigMapList{
				ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "c"},
				Items:    []corev1.ConfigMap{*configMap("a"), *configMap("b")},
			}, "list 7c; " + configMapText("a") + "; " + configMapText("b"),
		},
		"Empty": {
			"an empty list is decoded",
			&corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, "list 7",
		},
		"Status": {"a status of the API server is decoded as a status",
			&metav1.Status{Code: 410, Message: "gone"}, "status 410 gone"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			decoded, _, err := configMapDecoder.Decode(encodeMessage(t, tc.sent), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, decodedLine(t, decoded)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestDecodingMessagesFails shows that malformed messages are errors.
func TestDecodingMessagesFails(t *testing.T) {
	list := encodeMessage(t, &corev1.ConfigMapList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.ConfigMap{*configMap("a")},
	})
	object := encodeMessage(t, configMap("n"))
	tests := map[string]struct {
		reason string
		data   []byte
	}{
		"Nothing": {"empty data without an envelope is refused", nil},
		"JSON":    {"JSON without an envelope is refused", []byte(configMapText("n"))},
		"Other":   {"an object of another kind is refused", encodeMessage(t, &corev1.Secret{})},
		"Cut":     {"a list that is cut off is refused", list[:len(list)-1]},
		"InList": {"a list with a damaged element is refused",
			bytes.Replace(list, []byte("\n\x01a"), []byte("\n\x7fa"), 1)},
		"About": {"a list with damaged metadata is refused",
			bytes.Replace(list, []byte("\x12\x017"), []byte("\x12\x7f7"), 1)},
		"Object": {"a damaged object is refused", bytes.Replace(object, []byte("\n\x01n"), []byte("\n\x7fn"), 1)},
		"Type": {"a list with a damaged type is refused",
			bytes.Replace(list, []byte("\x02v1"), []byte("\x7fv1"), 1)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if decoded, _, err := configMapDecoder.Decode(tc.data, nil, nil); err == nil {
				t.Errorf("%s, but was decoded: %v", tc.reason, decoded)
			}
		})
	}
	for _, event := range []string{"\x0a", "\x0a\x7f", "\x12\x02\x0a\x7f"} {
		if _, _, err := configMapDecoder.Decode([]byte(event), nil, &metav1.WatchEvent{}); err == nil {
			t.Errorf("%q was decoded as an event", event)
		}
	}
	if err := configMapDecoder.Encode(nil, io.Discard); err == nil {
		t.Error("encoding did not fail")
	}
}

// TestDecodingAWatchOfMessages decodes a watch by client-go's own decoders.
func TestDecodingAWatchOfMessages(t *testing.T) {
	var stream bytes.Buffer
	framer := protobuf.LengthDelimitedFramer
	encoder := streaming.NewEncoder(
		framer.NewFrameWriter(&stream), protobuf.NewRawSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme),
	)
	wanted := []expectedEvent{
		{watch.Added, configMapText("n")}, {watch.Deleted, configMapText("m")}, {watch.Error, "status 410 gone"},
	}
	objects := []runtime.Object{configMap("n"), configMap("m"), &metav1.Status{Code: 410, Message: "gone"}}
	for i, one := range wanted {
		event := &metav1.WatchEvent{Type: string(one.event),
			Object: runtime.RawExtension{Raw: encodeMessage(t, objects[i])}}
		if err := encoder.Encode(event); err != nil {
			t.Fatal(err)
		}
	}
	decoder := restwatch.NewDecoder(
		streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(&stream)), configMapDecoder), configMapDecoder,
	)
	requireEvents(t, decoder, wanted)
}
