package reconcilers

import (
	"cmp"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// The defaults of [Watching] and of [Options.StuckTimeout]. The inactivity timeout is longer than the interval of the
// API server's bookmarks, about a minute, so an idle watch is not interrupted.
const (
	DefaultReconnectBackoff  = transport.DefaultReconnectBackoff
	DefaultInactivityTimeout = transport.DefaultInactivityTimeout
	DefaultStuckTimeout      = health.DefaultStuckTimeout
)

// Watching configures the watches of an operator. Zeros are the defaults, negative values mean no limit.
type Watching struct {
	// ServerTimeout is how long the API server keeps a watch before it ends it, rounded up to seconds. Zero is a random
	// time between 5 and 10 minutes, so that not all watches end at once. Negative leaves the choice to the server.
	// Kopf: watching.server_timeout.
	ServerTimeout time.Duration
	// ClientTimeout is how long the client keeps a watch; zero means without a limit. Kopf: watching.client_timeout.
	ClientTimeout time.Duration
	// InactivityTimeout is the time without any event or bookmark after which a watch is considered dead. It is
	// restarted from the last seen resource version. Zero is 70 seconds. Kopf: watching.inactivity_timeout.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the pause between two watches of a resource; zero is a tenth of a second. After errors, the
	// pause grows up to a minute, whatever this value is. Kopf: watching.reconnect_backoff.
	ReconnectBackoff time.Duration
}

// unlimited replaces "no limit" in code that needs a number, because it sets a deadline for each request.
const unlimited = 365 * 24 * time.Hour

// requestTimeout returns the limit of one attempt of a request with the given default.
func (o Options) requestTimeout(otherwise time.Duration) time.Duration {
	if o.RequestTimeout < 0 {
		return unlimited
	}
	return cmp.Or(o.RequestTimeout, otherwise)
}

// writeTimeout returns the limit of a write: the time of all attempts and of the delays between them.
func (o Options) writeTimeout() time.Duration {
	timeout := o.requestTimeout(kind.DefaultWriteTimeout)
	for _, delay := range o.APIBackoffs {
		timeout += delay + max(0, o.RequestTimeout)
	}
	return timeout
}

// transportLimits returns the limits of requests and watches for the transport.
func (o Options) transportLimits() transport.RequestLimits {
	return transport.RequestLimits{
		RequestTimeout: o.RequestTimeout, ServerTimeout: o.Watching.ServerTimeout,
		ClientTimeout:     o.Watching.ClientTimeout,
		InactivityTimeout: o.Watching.InactivityTimeout, ReconnectBackoff: o.Watching.ReconnectBackoff,
	}
}
