package informers

import (
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

var errEncodingUnsupported = errors.New("an informer sends nothing")

// serializer decodes the answers to lists and watches. It offers protobuf for a kind that has messages, and JSON for
// every kind, because an API server may not be able to encode the kind as protobuf.
type serializer struct {
	texts  textDecoder
	events *transport.WatchEvents
}

var _ runtime.NegotiatedSerializer = serializer{}

// SupportedMediaTypes returns the media types in the order of preference.
func (s serializer) SupportedMediaTypes() (all []runtime.SerializerInfo) {
	// The metadata form is only implemented for JSON.
	if s.texts.packer.Kind() != nil && s.texts.metadataType == nil {
		in := messageDecoder{s.texts.packer}
		all = append(all, runtime.SerializerInfo{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application",
			MediaTypeSubType: "vnd.kubernetes.protobuf", Serializer: in,
			StreamSerializer: &runtime.StreamSerializerInfo{
				Serializer: eventCounter{in, s.events}, Framer: protobuf.LengthDelimitedFramer,
			},
		})
	}
	// JSON frames have no length, so their reader needs a limit; protobuf frames bring their own.
	return append(all, runtime.SerializerInfo{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json",
		EncodesAsText: true, Serializer: s.texts,
		StreamSerializer: &runtime.StreamSerializerInfo{
			EncodesAsText: true, Serializer: eventCounter{s.texts, s.events},
			Framer: boundedFramer{json.Framer, s.events},
		},
	})
}

// EncoderForVersion returns the encoder unchanged, because nothing is converted between versions.
func (s serializer) EncoderForVersion(encoder runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return encoder
}

// DecoderToVersion returns the decoder unchanged, because nothing is converted between versions.
func (s serializer) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}

// largestEvent is the size limit of one watch event in bytes. It only protects the memory of the process: an object in
// etcd has at most 1.5 MiB.
const largestEvent = 16 << 20

// eventCounter is a serializer that counts the watch events it decodes. The inactivity timeout of a watch depends on
// that count, so that bytes that never complete an event do not keep a dead watch alive.
type eventCounter struct {
	runtime.Serializer

	events *transport.WatchEvents
}

// Decode decodes with the wrapped serializer, and counts the result if it is a watch event.
func (c eventCounter) Decode(
	data []byte, kind *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	object, found, err := c.Serializer.Decode(data, kind, into)
	if _, isEvent := into.(*metav1.WatchEvent); isEvent && err == nil {
		c.events.NoteDecoded()
	}
	return object, found, err
}

// boundedFramer is a framer that fails for an event of more than largestEvent bytes. The JSON framer of Kubernetes
// would buffer an endless event until memory runs out.
type boundedFramer struct {
	runtime.Framer

	events *transport.WatchEvents
}

// NewFrameReader returns a reader of single events with the size limit.
func (f boundedFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return f.Framer.NewFrameReader(&boundedReader{ReadCloser: r, events: f.events})
}

// boundedReader counts the bytes since the last complete event, and fails when they exceed the limit.
type boundedReader struct {
	io.ReadCloser

	events    *transport.WatchEvents
	lastCount uint64 // the number of events at the last read
	size      int
}

// Read reads from the stream, unless the current event is already too large.
func (b *boundedReader) Read(p []byte) (int, error) {
	// A new event was decoded since the last read: start to count again.
	if now := b.events.DecodedCount(); now != b.lastCount {
		b.lastCount, b.size = now, 0
	}
	// The error ends the watch, and the reflector starts another one.
	if b.size > largestEvent {
		return 0, fmt.Errorf("reading an event of a watch: it has more than %d bytes", largestEvent)
	}
	n, err := b.ReadCloser.Read(p)
	b.size += n
	return n, err
}
