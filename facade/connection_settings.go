package facade

import "time"

// WatchingSettings are those of the requests that watch objects. Kopf: settings.watching.
type WatchingSettings struct {
	// ServerTimeout is when the API server is asked to end a watch, which begins anew then. Not served yet. Kopf:
	// server_timeout.
	ServerTimeout time.Duration
	// ClientTimeout is how long a watch may last in all. Not served yet. Kopf: client_timeout.
	ClientTimeout time.Duration
	// ConnectTimeout is how long a watch may take to connect. Not served yet. Kopf: connect_timeout.
	ConnectTimeout time.Duration
	// ReconnectBackoff is the delay between two watches. Not served yet. Kopf: reconnect_backoff.
	ReconnectBackoff time.Duration
	// InactivityTimeout is how long a watch may be silent before it is taken for dead. Not served yet. Kopf:
	// inactivity_timeout.
	InactivityTimeout time.Duration
}

// NetworkingSettings are those of all requests to the API server. Kopf: settings.networking.
type NetworkingSettings struct {
	// RequestTimeout is how long one request may take. Not served yet. Kopf: request_timeout.
	RequestTimeout time.Duration
	// ConnectTimeout is how long a request may take to connect. Not served yet. Kopf: connect_timeout.
	ConnectTimeout time.Duration
	// ErrorBackoffs have requests of the framework repeated on the spot, after these delays: those that fail for want
	// of a connection, or with the status 403, 429 or 5xx. The object, and its place among those that are handled at
	// once, waits meanwhile; the requests of handlers through their clients are not concerned. When the last attempt
	// has failed, [QueueingSettings].ErrorDelays take over.
	//
	// Default: none, as the delays of the object do the same, and leave the place to others. Kopf: error_backoffs,
	// which are 1, 1, 2, 3, 5, 8, 13, 21 seconds by default.
	ErrorBackoffs []time.Duration
	// EnforceRetryAfter lets the API server shorten the delays of ErrorBackoffs when it has too many requests;
	// otherwise, it can only make them longer. Kopf: enforce_retry_after.
	EnforceRetryAfter bool
	// TrustEnv lets the environment choose proxies. Not served yet. Kopf: trust_env.
	TrustEnv bool
}
