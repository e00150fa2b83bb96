package reconcilers

import (
	"cmp"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// The defaults of [Watching], which are enough for bookmarks, and of [Options.StuckTimeout].
const (
	DefaultReconnectBackoff  = transport.DefaultPause
	DefaultInactivityTimeout = transport.DefaultInactivity
	DefaultStuckTimeout      = health.DefaultStuck
)

// Watching says how an operator watches. Zeros are the defaults, negative values are no limits.
type Watching struct {
	// ServerTimeout is after what time the API server is asked to end a watch, rounded up to seconds; zero is 5 to 10
	// minutes, by chance, so that not all end at once. Negative leaves it to the server. Kopf: watching.server_timeout.
	ServerTimeout time.Duration
	// ClientTimeout is after what time a watch is ended on this side; zero is never. Kopf: watching.client_timeout.
	ClientTimeout time.Duration
	// InactivityTimeout is after what time without any event or bookmark a watch is taken for dead, and begun anew from
	// where it was; zero is 70 seconds. Kopf: watching.inactivity_timeout.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the pause between two watches of a resource; zero is a tenth of a second. After errors,
	// pauses grow up to a minute, whatever is said here. Kopf: watching.reconnect_backoff.
	ReconnectBackoff time.Duration
}

// unlimited stands for no limit: code that sets a deadline for each request needs some number.
const unlimited = 365 * 24 * time.Hour

// requestTimeout is the limit of one attempt of a request whose default this is.
func (o Options) requestTimeout(otherwise time.Duration) time.Duration {
	if o.RequestTimeout < 0 {
		return unlimited
	}
	return cmp.Or(o.RequestTimeout, otherwise)
}

// writeTimeout has time for all attempts.
func (o Options) writeTimeout() time.Duration {
	timeout := o.requestTimeout(settings.DefaultWriteTimeout)
	for _, delay := range o.APIBackoffs {
		timeout += delay + max(0, o.RequestTimeout)
	}
	return timeout
}

// limits are those of requests and watches.
func (o Options) limits() transport.Limits {
	return transport.Limits{
		Request: o.RequestTimeout, Server: o.Watching.ServerTimeout, Client: o.Watching.ClientTimeout,
		Inactivity: o.Watching.InactivityTimeout, Pause: o.Watching.ReconnectBackoff,
	}
}
