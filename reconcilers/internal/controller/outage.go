package controller

import (
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// outage is the time in which the API server does not answer the controllers of one operator. It is logged once for all
// of them.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero while the API server answers
}

// isUnreachable is true for requests that no server has answered.
func isUnreachable(err error) bool {
	var failed *url.Error
	return errors.As(err, &failed)
}

func (o *outage) begin(log logr.Logger, err error) {
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

func (o *outage) end(log logr.Logger) {
	o.mu.Lock()
	since := o.since
	o.since = time.Time{}
	o.mu.Unlock()
	if !since.IsZero() {
		log.Info("API server is reachable again", "after", time.Since(since).Round(time.Second).String())
	}
}
