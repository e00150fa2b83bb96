package informers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// decodedLine returns the output of the decoder in one line.
func decodedLine(t *testing.T, decoded runtime.Object) string {
	t.Helper()
	switch found := decoded.(type) {
	case *metav1.Status:
		return fmt.Sprintf("status %d %s", found.Code, found.Message)
	case *compact.CachedObject:
		text, err := found.Text()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	default:
		all, err := meta.ExtractList(decoded)
		if err != nil {
			t.Fatal(err)
		}
		about, err := meta.ListAccessor(decoded)
		if err != nil {
			t.Fatal(err)
		}
		lines := []string{"list " + about.GetResourceVersion() + about.GetContinue()}
		for _, one := range all {
			lines = append(lines, decodedLine(t, one))
		}
		return strings.Join(lines, "; ")
	}
}

// TestDecoding shows how the texts of objects, lists, bookmarks and errors are decoded.
func TestDecoding(t *testing.T) {
	tests := map[string]struct{ reason, text, want string }{
		"Object": {
			"an object is kept unchanged", `{"kind":"A","metadata":{"name":"n"}}`,
			`{"kind":"A","metadata":{"name":"n"}}`,
		},
		"List": {
			"elements of a list get its apiVersion and their kind",
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c"},"items":[` +
				`{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
			`list 7c; {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}; ` +
				`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}`,
		},
		"EmptyElement": {
			"an empty element gets the type alone", `{"kind":"PodList","apiVersion":"v1","items":[{},{ }]}`,
			`list ; {"apiVersion":"v1","kind":"Pod"}; {"apiVersion":"v1","kind":"Pod" }`,
		},
		"Empty": {
			"an empty list is decoded",
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`,
			"list 7",
		},
		"Null": {"a list with null as its items is decoded as empty",
			`{"kind":"PodList","apiVersion":"v1","items":null}`, "list "},
		"NoList": {
			"an object whose kind ends in List, and that has items and a name, is an object",
			`{"kind":"ShoppingList","metadata":{"name":"n"},"items":[1]}`,
			`{"kind":"ShoppingList","metadata":{"name":"n"},"items":[1]}`,
		},
		"Bookmark": {
			"a bookmark is an object, even if its kind ends in List",
			`{"kind":"ShoppingList","metadata":{"resourceVersion":"7"}}`,
			`{"kind":"ShoppingList","metadata":{"resourceVersion":"7"}}`,
		},
		"Status": {
			"a status of the API server is decoded as a status",
			`{"kind":"Status","apiVersion":"v1","code":410,"message":"gone"}`, "status 410 gone",
		},
		"OtherStatus": {
			"an object of a custom kind named Status is an object",
			`{"kind":"Status","apiVersion":"example.org/v1","metadata":{"name":"n"}}`,
			`{"kind":"Status","apiVersion":"example.org/v1","metadata":{"name":"n"}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			decoded, _, err := textDecoder{}.Decode([]byte(tc.text), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, decodedLine(t, decoded)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestDecodingFails shows that malformed texts are errors.
func TestDecodingFails(t *testing.T) {
	for _, text := range []string{
		``, `{`, `[]`, `{"kind":"PodList","items":{}}`, `{"kind":"PodList","items":[5]}`,
		`{"kind":"PodList","items":[{]}`, `{"kind":"PodList","metadata":5,"items":[]}`,
		`{"kind":"Status","apiVersion":"v1","code":"x"}`, `{"metadata":1}`,
	} {
		if _, _, err := (textDecoder{}).Decode([]byte(text), nil, nil); err == nil {
			t.Errorf("%s was decoded", text)
		}
	}
	reducing := textDecoder{keepsWhole: func([]byte) bool { return false }}
	malformed := `{"kind":"AList","items":[{"metadata":{"name":"n"},"data":}]}`
	if _, _, err := reducing.Decode([]byte(malformed), nil, nil); err == nil {
		t.Error("a malformed object was decoded that is reduced to its identity")
	}
	if _, _, err := (textDecoder{}).Decode([]byte(`[]`), nil, &metav1.WatchEvent{}); err == nil {
		t.Error("a list was decoded as a watch event")
	}
	if err := (textDecoder{}).Encode(nil, io.Discard); err == nil {
		t.Error("encoding did not fail")
	}
}

// TestDecodingAWatch decodes a watch by client-go's own decoders.
func TestDecodingAWatch(t *testing.T) {
	stream := `{"type":"ADDED","object":{"kind":"A","metadata":{"name":"n"}}}
		{"object":{"kind":"A","metadata":{"name":"m"}},"type":"DELETED"}
		{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"message":"gone"}}`
	decoder := restwatch.NewDecoder(
		streaming.NewDecoder(json.Framer.NewFrameReader(io.NopCloser(strings.NewReader(stream))), textDecoder{}),
		textDecoder{},
	)
	requireEvents(t, decoder, []expectedEvent{
		{watch.Added, `{"kind":"A","metadata":{"name":"n"}}`}, {watch.Deleted, `{"kind":"A","metadata":{"name":"m"}}`},
		{watch.Error, "status 410 gone"},
	})
}

// expectedEvent is an event of a watch, with its object as in shown.
type expectedEvent struct {
	event watch.EventType
	text  string
}

// requireEvents reads a watch to its end and compares the events.
func requireEvents(t *testing.T, decoder *restwatch.Decoder, wanted []expectedEvent) {
	t.Helper()
	for _, want := range wanted {
		event, object, err := decoder.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if got := decodedLine(t, object); event != want.event || got != want.text {
			t.Errorf("got %s %s, want %s %s", event, got, want.event, want.text)
		}
	}
	if _, _, err := decoder.Decode(); !errors.Is(err, io.EOF) {
		t.Errorf("expected the end of the watch, got %v", err)
	}
}

// TestDecodingMetadata shows that a metadata-only interest keeps only metadata, whatever was sent, under the actual
// kind.
func TestDecodingMetadata(t *testing.T) {
	tests := map[string]struct{ reason, text, want string }{
		"Object": {
			"an object with metadata only gets its actual kind",
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"n"}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}}`,
		},
		"List": {
			"elements of a list with metadata only get their actual kind",
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},` +
				`"items":[{"kind":"PartialObjectMetadata","metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
			`list 7; {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}; ` +
				`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}`,
		},
		"Whole": {
			"a whole object is reduced to its metadata",
			`{"kind":"Pod","apiVersion":"v1","metadata":{"managedFields":[],"name":"n"},"spec":{"a":1}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}}`,
		},
		"WholeList": {
			"whole elements of a list are reduced to their metadata",
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` +
				`{"spec":{"a":1},"metadata":{"name":"a"}}]}`,
			`list 7; {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
		},
		"Status": {
			"a status of the API server is decoded as a status",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"code":410,"message":"gone"}`,
			"status 410 gone",
		},
		"Nameless": {"an object without metadata is decoded without a name",
			`{}`, `{"apiVersion":"v1","kind":"Pod","metadata":{}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := textDecoder{metadataType: &metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
			decoded, _, err := s.Decode([]byte(tc.text), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, decodedLine(t, decoded)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
	for _, text := range []string{
		``, `{"kind":"PodList","items":[{]}`, `{"kind":"PodList","items":[5]}`, `{"metadata":1}`,
	} {
		s := textDecoder{metadataType: &metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		if _, _, err := s.Decode([]byte(text), nil, nil); err == nil {
			t.Errorf("%s was decoded", text)
		}
	}
}

// endlessText reads as the middle of a string that never ends.
type endlessText struct{}

func (endlessText) Read(into []byte) (int, error) {
	copy(into, bytes.Repeat([]byte("x"), len(into)))
	return len(into), nil
}

// TestAnEventThatIsTooLargeEndsTheWatch shows that an endless event is refused instead of buffered.
func TestAnEventThatIsTooLargeEndsTheWatch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	stream := io.NopCloser(io.MultiReader(strings.NewReader(`{"type":"`), endlessText{}))
	frames := boundedFramer{json.Framer, &transport.WatchEvents{}}.NewFrameReader(stream)
	if _, err := frames.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("an endless event is buffered without a limit: %v", err)
	}
}

// TestLargeEventsOfOneWatchAreRead shows that the size limit applies to each event, not to the sum of a watch.
func TestLargeEventsOfOneWatchAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	event := `{"type":"ADDED","object":{"kind":"A","metadata":{"name":"` + strings.Repeat("x", largestEvent/3) + `"}}}`
	events := &transport.WatchEvents{}
	stream := io.NopCloser(strings.NewReader(strings.Repeat(event, 9)))
	decoder := streaming.NewDecoder(
		boundedFramer{json.Framer, events}.NewFrameReader(stream), eventCounter{textDecoder{}, events},
	)
	for n := range 9 {
		if _, _, err := decoder.Decode(nil, &metav1.WatchEvent{}); err != nil {
			t.Fatalf("event %d: the limit applies to a single event, not to the whole watch: %v", n, err)
		}
	}
}
