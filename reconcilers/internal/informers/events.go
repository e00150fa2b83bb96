package informers

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// largestEvent is the size limit of one event in bytes. An object in etcd has at most 1.5 MiB.
const largestEvent = 16 << 20

// eventCounter is a serializer that reports the events it decodes, so that bytes which never complete an event do not
// keep a watch alive.
type eventCounter struct {
	runtime.Serializer

	events *transport.Events
}

// Decode is that of the serializer.
func (c eventCounter) Decode(
	data []byte, kind *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	object, found, err := c.Serializer.Decode(data, kind, into)
	if _, isEvent := into.(*metav1.WatchEvent); isEvent && err == nil {
		c.events.Decoded()
	}
	return object, found, err
}

// boundedFramer is a framer that fails for an event of more than largestEvent bytes. The JSON framer of Kubernetes
// would buffer an event that never ends.
type boundedFramer struct {
	runtime.Framer

	events *transport.Events
}

// NewFrameReader reads one event after another.
func (f boundedFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return f.Framer.NewFrameReader(&boundedReader{ReadCloser: r, events: f.events})
}

// boundedReader counts the bytes since the last event.
type boundedReader struct {
	io.ReadCloser

	events *transport.Events
	seen   uint64 // the number of events at the last read
	size   int
}

// Read is that of the stream.
func (b *boundedReader) Read(p []byte) (int, error) {
	if now := b.events.Count(); now != b.seen {
		b.seen, b.size = now, 0
	}
	if b.size > largestEvent {
		return 0, fmt.Errorf("reading an event of a watch: it has more than %d bytes", largestEvent)
	}
	n, err := b.ReadCloser.Read(p)
	b.size += n
	return n, err
}
