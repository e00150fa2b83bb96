package transport

import (
	"context"
	"sync/atomic"
)

// Events counts the events that a client has decoded, over one watch after another. If the context of a watch has one,
// the inactivity timeout restarts with each event; otherwise it restarts with each read. The zero value is ready to
// use.
type Events struct{ decoded atomic.Uint64 }

// eventsKey is the context key of Events.
type eventsKey struct{}

// WithEvents returns a context for watches whose client reports events to e.
func WithEvents(ctx context.Context, e *Events) context.Context {
	return context.WithValue(ctx, eventsKey{}, e)
}

// eventsOf returns the counter of the context, or nil.
func eventsOf(ctx context.Context) *Events {
	e, _ := ctx.Value(eventsKey{}).(*Events)
	return e
}

// NoteDecoded counts one event. Any goroutine may call it.
func (e *Events) NoteDecoded() { e.decoded.Add(1) }

// DecodedCount returns the number of events so far; 0 for nil.
func (e *Events) DecodedCount() uint64 {
	if e == nil {
		return 0
	}
	return e.decoded.Load()
}
