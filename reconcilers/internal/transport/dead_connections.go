package transport

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// closeIfSilent closes the connection of a request if nothing was received on it for the given time. The next attempt
// then opens another connection. All other requests on the connection fail, as they would fail later anyway.
func (u *requestConnection) closeIfSilent(ctx context.Context, silence time.Duration) {
	conn := u.conn.Load()
	if conn == nil {
		return
	}
	// Another request may have received something on the same connection: it is then alive.
	u.connections.mu.Lock()
	at, known := u.connections.lastReceived[*conn]
	if dead := !known || time.Since(at) >= silence; !dead {
		u.connections.mu.Unlock()
		return
	}
	delete(u.connections.lastReceived, *conn)
	u.connections.mu.Unlock()
	// Close without the lock, as it may block.
	_ = (*conn).Close()
	logf.FromContext(ctx).V(1).Info("Closed a connection to the API server: it takes requests, and answers none",
		"silent", silence.String())
}
