package controller

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Outage records the time for which the API server is unreachable. It is logged once for all controllers of an
// operator. The zero value is ready to use.
type Outage struct {
	mu    sync.Mutex
	since time.Time // zero while the API server answers
}

// isUnreachable reports whether the request found no server. A slow or untrusted server is a different failure, which
// may concern one kind only.
func isUnreachable(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &name)
}

// noteUnreachable records that the API server is unreachable, and logs the first such error of an outage.
func (o *Outage) noteUnreachable(log logr.Logger, err error) {
	o.mu.Lock()
	isNew := o.since.IsZero()
	if isNew {
		o.since = time.Now()
	}
	o.mu.Unlock()
	if isNew {
		log.Error(err, "API server is unreachable; handlers wait until it answers")
	}
}

// noteReachable records that the API server answers, and logs the end of an outage.
func (o *Outage) noteReachable(log logr.Logger) {
	o.mu.Lock()
	since := o.since
	o.since = time.Time{}
	o.mu.Unlock()
	if !since.IsZero() {
		log.Info("API server is reachable again", "after", time.Since(since).Round(time.Second).String())
	}
}
