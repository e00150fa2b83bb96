package transport

import (
	"context"
	"sync/atomic"
)

// WatchEvents counts the events that a client has decoded, over one watch after another. If the context of a watch has
// one, the inactivity timeout restarts with each event; otherwise it restarts with each read. The zero value is ready
// to use.
type WatchEvents struct{ decoded atomic.Uint64 }

// eventsKey is the context key of Events.
type eventsKey struct{}

// WithEvents returns a context for watches whose client reports events to e.
func WithEvents(ctx context.Context, e *WatchEvents) context.Context {
	return context.WithValue(ctx, eventsKey{}, e)
}

// eventsOf returns the counter of the context, or nil.
func eventsOf(ctx context.Context) *WatchEvents {
	e, _ := ctx.Value(eventsKey{}).(*WatchEvents)
	return e
}

// NoteDecoded counts one event. Any goroutine may call it.
func (e *WatchEvents) NoteDecoded() { e.decoded.Add(1) }

// DecodedCount returns the number of events so far; 0 for nil.
func (e *WatchEvents) DecodedCount() uint64 {
	if e == nil {
		return 0
	}
	return e.decoded.Load()
}
