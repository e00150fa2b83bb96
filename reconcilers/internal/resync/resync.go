package resync

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Interval is how often a resync is made if none is requested earlier: extension servers come and go without
// anything that can be watched.
const Interval = 5 * time.Minute

// Requester takes requests for a resync: a kind was not found where it had been, or may be found now.
type Requester interface {
	// RequestResync never blocks. One resync is enough for all requests before it.
	RequestResync()
}

// Requests is a Requester. The orchestrator receives the requests from it.
type Requests chan struct{}

var _ Requester = Requests(nil)

// NewRequests makes one without any requests.
func NewRequests() Requests { return make(Requests, 1) }

// RequestResync never blocks.
func (r Requests) RequestResync() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// Backoff is between attempts to find out what the API server has.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}
