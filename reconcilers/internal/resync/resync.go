package resync

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Interval is the longest time between two resyncs. Aggregated API servers can come and go without an event that could
// be watched.
const Interval = 5 * time.Minute

// Requester accepts requests for a resync: a kind was not found any more, or may be found now.
type Requester interface {
	// RequestResync never blocks. One resync serves all requests before it.
	RequestResync()
}

// Requests is a Requester with room for one pending request. The orchestrator receives from it.
type Requests chan struct{}

var _ Requester = Requests(nil)

// NewRequests creates a Requests without a pending request.
func NewRequests() Requests { return make(Requests, 1) }

// RequestResync adds a request, unless one is already pending.
func (r Requests) RequestResync() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// Backoff returns the delays between attempts to resolve selectors: from one second, doubling, to 30 seconds.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}
