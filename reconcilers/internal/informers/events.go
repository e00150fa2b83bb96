package informers

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

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
