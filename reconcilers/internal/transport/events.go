package transport

import (
	"context"
	"sync/atomic"
)

// Events counts the events that a client has decoded from one watch after another. With it, the inactivity timeout of a
// watch starts again with each event; without it, with each read. The zero value is ready to use.
type Events struct{ decoded atomic.Uint64 }

type eventsKey struct{}

// WithEvents returns a context for requests of watches whose events the client reports to e.
func WithEvents(ctx context.Context, e *Events) context.Context {
	return context.WithValue(ctx, eventsKey{}, e)
}

func eventsOf(ctx context.Context) *Events {
	e, _ := ctx.Value(eventsKey{}).(*Events)
	return e
}

// Decoded reports one event.
func (e *Events) Decoded() { e.decoded.Add(1) }

// Count returns the number of events so far. It is 0 for nil.
func (e *Events) Count() uint64 {
	if e == nil {
		return 0
	}
	return e.decoded.Load()
}
