package kopf

import "time"

// QueueingSettings are those of objects that wait to be handled. Kopf: settings.queueing.
type QueueingSettings struct {
	// WorkerLimit is how many objects of one kind are handled at once, in all namespaces together. Default: 100, as
	// handlers may sleep.
	//
	// A handler holds one of these workers until it returns. Without a [Timeout], or if it does not end with its
	// context, it may do so for ever; as many of these as there are workers stop the kind, which is told in the log
	// with their ids. One worker in ten, at least one, is kept for deletions, and as many for all the rest, so that
	// neither stops the other. A limit of 1 runs no two handlers of a kind beside each other, and keeps nothing.
	// Daemons and timers need no workers: see [BackgroundSettings].
	//
	// Kopf: worker_limit, without a limit by default.
	WorkerLimit int
	// ExitTimeout is how long handlers may go on when the operator exits, before their contexts end with [ErrExiting].
	// The objects that are being handled are brought to their end if there is the time; what waits for its turn is left
	// to the next process. Default: 2 seconds; [Immediately] ends the contexts at once. Daemons and timers are asked to
	// stop at once either way. Under [Main] and [Operator.Run], the whole operator has 30 seconds more before the
	// cleanup, and the grace period of its pod must be longer than both. In a manager of a project, its
	// GracefulShutdownTimeout is for the whole exit, 30 seconds by default; where managers elect a leader, stay below
	// LeaseDuration minus RenewDeadline, 5 seconds by default, as the next leader handles the objects from then on.
	// Kopf: exit_timeout.
	ExitTimeout time.Duration
	// StuckTimeout is how long a worker may be stuck before the health check of the process fails, so that a liveness
	// probe restarts it: a handler that goes on though its [Timeout] is over, or all workers of a kind while objects
	// wait and none gets free. A handler that takes long while nobody waits for it is not stuck. Default: 10 minutes;
	// [Never] fails no check. Kopf: none.
	StuckTimeout time.Duration
	// ErrorDelays say how an object is spaced while the framework itself fails for it: an API server that does not take
	// its writes, a filter that panics. After each failure in a row the next delay is waited, then the last one again
	// and again; a success begins anew. Other objects go on. With a list that is empty but not nil, the object waits
	// for its next event, whenever that is.
	//
	// Default, for nil: 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 seconds. Kopf: error_delays.
	ErrorDelays []time.Duration
}

// ExecutionSettings are those of calls of handlers. Kopf: settings.execution.
type ExecutionSettings struct {
	// NoInheritedLabels has children that handlers declare or adopt get no labels of the object. Otherwise they inherit
	// all but those of kubernetes.io and k8s.io, see [hierarchies.Inherited], and Namespaces inherit none; with
	// [AsKopf], all children inherit all labels. Default: false. Kopf: none.
	NoInheritedLabels bool
	// FormerManagers are field managers, as in metadata.managedFields, whose fields of children [Change.Ensure] takes
	// over when it applies a child first in a process: those that the operator does not declare are removed then. Those
	// that have set the owner reference to the object, or its label, are taken over anyway: former programs that made
	// the children, and this operator under a former name. Name here who has only changed them. Default: none. Kopf:
	// none.
	FormerManagers []string
	// DefaultBackoff is the delay after ordinary errors of handlers without a [Backoff] of their own. Default: 60
	// seconds; [Immediately] is none. Kopf: default_backoff.
	DefaultBackoff time.Duration
	// Lifecycle says which of the handlers that are due for an object are called in one go, sub-handlers included.
	// Default: [InOrder], also with [AsKopf]; [LifecycleFunc] makes others. Those that call one at a time write to the
	// object after each. Kopf: set_default_lifecycle, with asap as the default.
	Lifecycle Lifecycle
	// Checkpoint is how long the outcome of a handler may wait for its write while the next handler of the object is
	// running: so much of what was done is done again after a crash. Default: one second. A longer time saves writes
	// where handlers are slow. Kopf: none, it writes after each handler.
	Checkpoint time.Duration
}

// BackgroundSettings are those of daemons and timers. Kopf: settings.background.
type BackgroundSettings struct {
	// CancellationPolling is how often the log mentions a daemon or a timer that does not end, without a
	// [CancelPolling] of its own. Default: a minute; [Never] mentions none. Kopf: cancellation_polling.
	CancellationPolling time.Duration
	// InstantExitTimeout is how long daemons that are asked to stop may take to end at once, before anything else is
	// done about it; it is a part of [CancelBackoff]. Default: 10 milliseconds. Kopf: instant_exit_timeout, none by
	// default, as its daemons are looked at in another way.
	InstantExitTimeout time.Duration
	// MaxConcurrentDaemons is how many daemons run at once. Further ones wait for their turn, with a line in the log.
	// Default: no limit.
	MaxConcurrentDaemons int
	// MaxConcurrentTicks is how many calls of timers run at once; further ones wait for their turn. Default: 1000.
	MaxConcurrentTicks int
}
