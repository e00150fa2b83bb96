package transport

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

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
