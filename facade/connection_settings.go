package kopf

import "time"

// WatchingSettings are those of the requests that watch objects. Kopf: settings.watching.
type WatchingSettings struct {
	// ServerTimeout is after what time the API server is asked to end a watch, in whole seconds, rounded up. It goes on
	// with the next one from where it was. Default: 5 to 10 minutes, by chance, so that not all end at once; [Never]
	// leaves it to the server. Kopf: server_timeout, which is left to the server by default.
	ServerTimeout time.Duration
	// ClientTimeout is after what time a watch is ended on this side, its request included. Default: [Never]. Kopf:
	// client_timeout.
	ClientTimeout time.Duration
	// ConnectTimeout is how long a TCP handshake may take that a watch is waiting for. Under [Main] only. Default: that
	// of [NetworkingSettings]; [Never] leaves it to the operating system. Kopf: connect_timeout.
	ConnectTimeout time.Duration
	// ReconnectBackoff is the pause between the end of a watch and the next one of the same resource. Default: a tenth
	// of a second; [Immediately] is none. After errors, pauses grow up to a minute, whatever is said here. Kopf:
	// reconnect_backoff.
	ReconnectBackoff time.Duration
	// InactivityTimeout is after what time without an event, or a bookmark, of which an API server sends one a minute,
	// a watch is taken for dead, and begun anew from where it was: a connection may end without a word. Default: 70
	// seconds; [Never] relies on the connection. Kopf: inactivity_timeout.
	InactivityTimeout time.Duration
}

// NetworkingSettings are those of all requests to the API server. Kopf: settings.networking.
type NetworkingSettings struct {
	// RequestTimeout is how long a request of the framework may take that is no watch; with ErrorBackoffs, each
	// attempt. The requests of handlers through their clients end with their contexts. Default: 10 seconds for writes,
	// as a worker waits for them, and for the search for kinds; 5 minutes for lists of objects. [Never] has no limit.
	// Kopf: request_timeout, 5 minutes for all by default.
	RequestTimeout time.Duration
	// ConnectTimeout is how long a TCP handshake may take, also for the clients of handlers. Under [Main] only: in a
	// manager that the project makes, it is a matter of the manager's rest.Config. Default: 30 seconds; [Never] leaves
	// it to the operating system. Kopf: connect_timeout, which is limited by request_timeout alone by default.
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
	// otherwise, it can only make them longer. If it asks for more time than a request may take, the object waits that
	// long, up to 10 minutes. Kopf: enforce_retry_after.
	EnforceRetryAfter bool
	// TrustEnv takes the proxies of the environment, such as HTTPS_PROXY; that of a kubeconfig is taken either way.
	// Under [Main] only: in a manager that the project makes, it is a matter of the manager's rest.Config. Kopf:
	// trust_env.
	TrustEnv bool
}
