package kopf

import "time"

// QueueingSettings configure how objects wait to be handled, see docs/workers.md. Kopf: settings.queueing.
type QueueingSettings struct {
	// WorkerLimit is how many objects of one kind are handled at once. A handler occupies a worker until it returns, so
	// set a [Timeout]. Default: 100. Kopf: worker_limit, unlimited.
	WorkerLimit int
	// ExitTimeout is how long handlers may continue at the exit, before their contexts end with [ErrExiting]: see
	// docs/activities.md. Default: 2 seconds. Accepts [Immediately]. Kopf: exit_timeout.
	ExitTimeout time.Duration
	// StuckTimeout is how long workers may be stuck before the health check fails, see docs/health.md. Default: 10
	// minutes. Accepts [Never].
	StuckTimeout time.Duration
	// ErrorDelays are the delays of an object after errors of the framework itself; the last one repeats. With an empty
	// list, the object waits for its next event. Default, for nil: 1 to 610 seconds. Kopf: error_delays.
	ErrorDelays []time.Duration
}

// ExecutionSettings configure the calls of handlers. Kopf: settings.execution.
type ExecutionSettings struct {
	// NoInheritedLabels stops children from inheriting labels of the object, see docs/children.md.
	NoInheritedLabels bool
	// FormerManagers are further field managers whose fields [Change.Ensure] takes over, see docs/children.md.
	FormerManagers []string
	// DefaultBackoff is the delay after ordinary errors of handlers without a [Backoff]. Default: 60 seconds. Accepts
	// [Immediately]. Kopf: default_backoff.
	DefaultBackoff time.Duration
	// Lifecycle selects the due handlers that one pass calls. Default: [InOrder]. Kopf: set_default_lifecycle, asap.
	Lifecycle Lifecycle
	// Checkpoint is how long an outcome may stay unsaved while the next handler runs. A crash repeats unsaved handlers.
	// Default: one second. Kopf saves after each handler.
	Checkpoint time.Duration
}

// BackgroundSettings configure daemons and timers. Kopf: settings.background.
type BackgroundSettings struct {
	// CancellationPolling is the interval of log lines about daemons that do not stop. Default: a minute. Accepts
	// [Never]. Kopf: cancellation_polling.
	CancellationPolling time.Duration
	// InstantExitTimeout is how long a stop may take before the next step. Default: 10 milliseconds. Kopf:
	// instant_exit_timeout.
	InstantExitTimeout time.Duration
	// MaxConcurrentDaemons is how many daemons run at once; others wait. Default: no limit.
	MaxConcurrentDaemons int
	// MaxConcurrentTicks is how many timer calls run at once; others wait. Default: 1000.
	MaxConcurrentTicks int
}
