package controller

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Outage is the time in which the API server cannot be reached. It is logged once for all controllers of an operator.
// The zero value is ready to use.
type Outage struct {
	mu    sync.Mutex
	since time.Time // zero while the API server answers
}

// isUnreachable is true for requests that found no server. A server that is slow, or that is not trusted, is another
// failure: it may be that of one kind.
func isUnreachable(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &name)
}

func (o *Outage) begin(log logr.Logger, err error) {
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

func (o *Outage) end(log logr.Logger) {
	o.mu.Lock()
	since := o.since
	o.since = time.Time{}
	o.mu.Unlock()
	if !since.IsZero() {
		log.Info("API server is reachable again", "after", time.Since(since).Round(time.Second).String())
	}
}
