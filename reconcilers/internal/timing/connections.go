package timing

import (
	"context"
	"maps"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// forgetting is after what time without any word a connection is forgotten; most of those are closed by then.
const forgetting = time.Hour

// connections know when something was heard by each of them, of whatever request. Requests of HTTP/2 share connections:
// one by which nothing comes any more would get each attempt anew.
type connections struct {
	mu    sync.Mutex
	heard map[net.Conn]time.Time
}

// used is the connection of one request; empty until it has one. Transports that have no connections leave it so.
type used struct {
	of   *connections
	conn atomic.Pointer[net.Conn]
}

// trace finds out which connection the request gets.
func (c *connections) trace(ctx context.Context) (context.Context, *used) {
	u := &used{of: c}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { u.conn.Store(&got.Conn) },
	}), u
}

// hear notes that something was heard.
func (u *used) hear() {
	conn := u.conn.Load()
	if conn == nil {
		return
	}
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	maps.DeleteFunc(u.of.heard, func(_ net.Conn, at time.Time) bool { return time.Since(at) > forgetting })
	u.of.heard[*conn] = time.Now()
}

// drop closes the connection if nothing was heard by it for so long, so that the next attempt gets another one. All
// that is under way on it fails, as it would in the end.
func (u *used) drop(ctx context.Context, silence time.Duration) {
	conn := u.conn.Load()
	if conn == nil {
		return
	}
	u.of.mu.Lock()
	at, known := u.of.heard[*conn]
	if dead := !known || time.Since(at) >= silence; !dead {
		u.of.mu.Unlock()
		return
	}
	delete(u.of.heard, *conn)
	u.of.mu.Unlock()
	_ = (*conn).Close()
	logf.FromContext(ctx).V(1).Info("Closed a connection to the API server: it takes requests, and answers none",
		"silent", silence.String())
}
