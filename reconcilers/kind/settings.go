package kind

import (
	"cmp"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Defaults of [Settings].
const (
	// DefaultWorkers is high, because handlers may block.
	DefaultWorkers = 100
	// DefaultCheckpoint is how long an outcome may wait for its write while the next handler runs.
	DefaultCheckpoint = time.Second
	// DefaultWriteTimeout limits writes whose requests are not retried.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultExitTimeout is sufficient for a handler that is about to return; so is DefaultPauseTimeout.
	DefaultExitTimeout  = 2 * time.Second
	DefaultPauseTimeout = 30 * time.Second
	// DefaultTicks is the maximum number of ticks of timers that run at once.
	DefaultTicks = 1000
	// DefaultPolling is the interval of log lines about a handler that does not stop.
	DefaultPolling = 60 * time.Second
	// DefaultInstantExit is how long a handler may take to stop by itself before the cancellation backoff begins.
	DefaultInstantExit = 10 * time.Millisecond
)

// DefaultErrorDelays are the delays between passes over an object while the framework fails for it. They are Fibonacci
// numbers, and the last one repeats. Kopf: queueing.error_delays.
var DefaultErrorDelays = []time.Duration{
	1 * time.Second, 1 * time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second,
	13 * time.Second, 21 * time.Second, 34 * time.Second, 55 * time.Second, 89 * time.Second, 144 * time.Second,
	233 * time.Second, 377 * time.Second, 610 * time.Second,
}

// Settings are the settings of one operator. They are immutable once the operator has resolved them.
type Settings struct {
	// Name is the name of the operator, which its controllers, its field manager and its metrics use.
	Name string
	// Prefix is the domain of the operator's annotations.
	Prefix string
	// Finalizer is the full name of the operator's finalizer.
	Finalizer string
	// BoundTo is the name of the annotation that binds the memory on an object to its uid. Without it, memory that was
	// copied from another object is trusted, too.
	BoundTo string
	// Diffbase stores the last-handled configuration, Progress the records of handlers.
	Diffbase diffbase.Storage
	Progress progress.Storage
	// CompactSubs omits the records of sub-handlers that succeeded; the record of their parent handler lists their
	// names. Kopf and other operators cannot read this form.
	CompactSubs bool
	// KopfTexts uses Kopf's texts for the errors of limits and sub-handlers in the records. It also stores the object
	// that the handlers saw as the last-handled configuration, without their own patches.
	KopfTexts bool
	// KopfDeletions calls deletion handlers while background handlers of the object are still stopping. It never calls
	// them for objects that disappear without our finalizer. Kopf does both.
	KopfDeletions bool
	// DeletionsOnly handles only objects that are being deleted.
	DeletionsOnly bool
	// LeaveFinalizers keeps the finalizer of an object whose background handler has ended by itself, until the next
	// event of the object, as Kopf does. By default, the finalizer is removed at once.
	LeaveFinalizers bool
	// Digests selects the values that are stored as digests, in addition to the fields that handlers redact.
	Digests Digests
	// Conditions are the condition types that report the state of handlers, if there are handlers that only report.
	Conditions conditions.Types
	// Workers is the maximum number of concurrent passes per kind, in all its namespaces; zero is DefaultWorkers. Of
	// two or more workers, some are reserved for deletions, and as many for other passes.
	Workers int
	// Backoff is the default delay after ordinary errors of handlers; zero is 60 seconds.
	Backoff time.Duration
	// Lifecycle selects which of the due handlers are called in a pass.
	Lifecycle handlers.Lifecycle
	// Checkpoint is how long the outcome of a handler may wait for its write while the next one runs; zero is
	// DefaultCheckpoint. A crash during that time repeats the handler.
	Checkpoint time.Duration
	// WriteTimeout limits one write with all its retries. A write continues while the operator exits. Zero is
	// DefaultWriteTimeout.
	WriteTimeout time.Duration
	// ErrorDelays are the delays after errors of the framework; nil is DefaultErrorDelays. With an empty list, a failed
	// object waits for its next event.
	ErrorDelays []time.Duration
	// Ticks is the maximum number of ticks of timers that run at once, in all kinds; zero is DefaultTicks.
	Ticks int
	// Daemons is the maximum number of daemons that run at once; zero is unlimited.
	Daemons int
	// CancelPolling is the interval of log lines about background handlers that do not stop; zero is DefaultPolling.
	// Kopf: background.cancellation_polling.
	CancelPolling time.Duration
	// InstantExit is how long background handlers may take to stop by themselves, before the stages of cancellation
	// begin; zero is DefaultInstantExit. Kopf: background.instant_exit_timeout.
	InstantExit time.Duration
	// ExitTimeout is how long handlers of changes and events may continue after the operator begins to exit. Then their
	// contexts are cancelled. Zero is DefaultExitTimeout; a negative value cancels them at once. Queued objects wait
	// for the next process. Kopf: queueing.exit_timeout.
	ExitTimeout time.Duration
	// PauseTimeout is how long running handlers may continue after a pause begins. Then their contexts are cancelled;
	// no further handlers are called meanwhile. Zero is DefaultPauseTimeout; a negative value cancels them at once.
	// Daemons are stopped at once, with the timeouts of their own options.
	PauseTimeout time.Duration
}

// Digests selects the values that are stored on objects only as digests. The zero value stores all values.
type Digests struct {
	// Limit is the maximum size of a value in bytes of JSON; larger ones become digests. Zero is the limit of
	// annotations.
	Limit int
	// Secrets stores all values of v1 Secrets as digests.
	Secrets bool
	// Keys are the secret keys of the digests, the current one first. Without keys, the uid of the object is used.
	Keys [][]byte
}

// WithDefaults returns the settings with their defaults. Other zero values, such as that of Backoff, are interpreted
// where they are used.
func (s Settings) WithDefaults() Settings {
	if s.ErrorDelays == nil {
		s.ErrorDelays = DefaultErrorDelays
	}
	// Negative timeouts are valid. All other negative values are replaced by the defaults.
	s.ExitTimeout = cmp.Or(s.ExitTimeout, DefaultExitTimeout)
	s.PauseTimeout = cmp.Or(s.PauseTimeout, DefaultPauseTimeout)
	s.Workers = cmp.Or(max(0, s.Workers), DefaultWorkers)
	s.Ticks = cmp.Or(max(0, s.Ticks), DefaultTicks)
	s.Checkpoint = cmp.Or(max(0, s.Checkpoint), DefaultCheckpoint)
	s.WriteTimeout = cmp.Or(max(0, s.WriteTimeout), DefaultWriteTimeout)
	s.CancelPolling = cmp.Or(max(0, s.CancelPolling), DefaultPolling)
	s.InstantExit = cmp.Or(max(0, s.InstantExit), DefaultInstantExit)
	return s
}
