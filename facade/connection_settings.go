package kopf

import "time"

// WatchingSettings configure watches. Kopf: settings.watching.
type WatchingSettings struct {
	// ServerTimeout is when the API server ends a watch, in whole seconds. Default: 5 to 10 minutes at random. Accepts
	// [Never]. Kopf: server_timeout, none.
	ServerTimeout time.Duration
	// ClientTimeout is when the operator ends a watch. Default: [Never]. Kopf: client_timeout.
	ClientTimeout time.Duration
	// ConnectTimeout limits TCP handshakes of watches. Not in a manager. Default: that of [NetworkingSettings]. Accepts
	// [Never]. Kopf: connect_timeout.
	ConnectTimeout time.Duration
	// ReconnectBackoff is the pause between two watches of a resource. Default: 0.1 seconds. Accepts [Immediately].
	// Kopf: reconnect_backoff.
	ReconnectBackoff time.Duration
	// InactivityTimeout restarts a watch after so long without an event or a bookmark. Default: 70 seconds. Accepts
	// [Never]. Kopf: inactivity_timeout.
	InactivityTimeout time.Duration
}

// NetworkingSettings configure all requests to the API server. Kopf: settings.networking.
type NetworkingSettings struct {
	// RequestTimeout limits requests of the framework, except watches. Default: 10 seconds for writes and discovery, 5
	// minutes for lists. Accepts [Never]. Kopf: request_timeout, 5 minutes.
	RequestTimeout time.Duration
	// ConnectTimeout limits TCP handshakes, also for handlers. Not in a manager. Default: 30 seconds. Accepts [Never].
	// Kopf: connect_timeout, none.
	ConnectTimeout time.Duration
	// ErrorBackoffs are delays to repeat a failed request on the spot, before [QueueingSettings].ErrorDelays. Default:
	// none. Kopf: error_backoffs, 1 to 21 seconds.
	ErrorBackoffs []time.Duration
	// EnforceRetryAfter lets the API server also shorten these delays. Kopf: enforce_retry_after.
	EnforceRetryAfter bool
	// TrustEnv uses proxies of the environment, such as HTTPS_PROXY. Not in a manager. Kopf: trust_env.
	TrustEnv bool
}
