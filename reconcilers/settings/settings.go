package settings

import (
	"cmp"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// The defaults of [Settings].
const (
	// DefaultWorkers is high, as handlers may sleep.
	DefaultWorkers = 100
	// DefaultCheckpoint is the time that an outcome may wait for its write while the next handler is running.
	DefaultCheckpoint = time.Second
	// DefaultWriteTimeout limits writes whose requests are made once.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultExitTimeout is enough for a handler that is about to return, and so is DefaultPauseTimeout.
	DefaultExitTimeout  = 2 * time.Second
	DefaultPauseTimeout = 30 * time.Second
	// DefaultTicks is how many ticks of timers run at once.
	DefaultTicks = 1000
	// DefaultPolling is the interval of the log lines about a handler that does not stop.
	DefaultPolling = 60 * time.Second
	// DefaultInstantExit is how long a handler may take to stop by itself before the cancellation backoff begins.
	DefaultInstantExit = 10 * time.Millisecond
)

// DefaultErrorDelays space the passes over an object while the framework fails for it. The last one repeats.
// Kopf: queueing.error_delays.
var DefaultErrorDelays = []time.Duration{
	1 * time.Second, 1 * time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second,
	13 * time.Second, 21 * time.Second, 34 * time.Second, 55 * time.Second, 89 * time.Second, 144 * time.Second,
	233 * time.Second, 377 * time.Second, 610 * time.Second,
}

// Settings are those of one operator.
type Settings struct {
	// Name is the operator's: of its controllers, its field manager, its metrics.
	Name string
	// Prefix is the domain of its annotations.
	Prefix string
	// Finalizer is the full name of its finalizer.
	Finalizer string
	// BoundTo is the annotation that binds the memory to its object; empty trusts all memory.
	BoundTo string
	// Diffbase and Progress store the memory.
	Diffbase diffbase.Storage
	Progress progress.Storage
	// CompactSubs leaves out the records of sub-handlers that succeeded: the record of their handler names them. Kopf
	// and other operators cannot read that.
	CompactSubs bool
	// KopfTexts words the errors of limits and sub-handlers in the records as Kopf does, and stores as handled last the
	// object that the handlers saw, without their own patches.
	KopfTexts bool
	// KopfDeletions calls deletion handlers while background handlers of the object still end, and never for objects
	// that disappear without our finalizer, as in Kopf.
	KopfDeletions bool
	// LeaveFinalizers leaves the finalizer of an object whose background handler has ended by itself, until the next
	// event of the object, as Kopf does. By default, it is removed at once.
	LeaveFinalizers bool
	// Digests says which values are remembered as digests, in addition to the fields that handlers redact.
	Digests Digests
	// Conditions are the types that objects report their handlers with, if there are handlers which only report.
	Conditions conditions.Types
	// Workers is how many objects of one kind are handled at once, in all its namespaces; zero is DefaultWorkers. Of
	// two and more, some are kept for deletions, and as many for the rest.
	Workers int
	// Backoff is the default delay after ordinary errors of handlers; zero is 60 seconds.
	Backoff time.Duration
	// Lifecycle picks from the handlers that are due.
	Lifecycle handlers.Lifecycle
	// Checkpoint is how long the outcome of a handler may wait for its write while the next one is running; zero is
	// DefaultCheckpoint.
	Checkpoint time.Duration
	// WriteTimeout limits one write, with all its attempts; it goes on while the operator exits. Zero is
	// DefaultWriteTimeout.
	WriteTimeout time.Duration
	// ErrorDelays are those of the framework's errors; nil is DefaultErrorDelays. With an empty list, an object that
	// failed waits for its next event.
	ErrorDelays []time.Duration
	// Ticks is how many ticks of timers run at once, in all kinds; zero is DefaultTicks.
	Ticks int
	// Daemons is how many daemons run at once; zero is any number.
	Daemons int
	// CancelPolling is the interval of the log lines about background handlers that do not stop; zero is
	// DefaultPolling. Kopf: background.cancellation_polling.
	CancelPolling time.Duration
	// InstantExit is how long background handlers may take to stop by themselves, before anything else is done about
	// it; zero is DefaultInstantExit. Kopf: background.instant_exit_timeout.
	InstantExit time.Duration
	// ExitTimeout is how long handlers of changes and events may go on when the operator exits, before their contexts
	// end; zero is DefaultExitTimeout; a negative value ends them at once. Queued objects wait for the next process.
	// Kopf: queueing.exit_timeout.
	ExitTimeout time.Duration
	// PauseTimeout is how long handlers that run when the operator is paused may go on, before their contexts end; no
	// further handlers are called meanwhile. Zero is DefaultPauseTimeout; a negative value ends them at once. Daemons
	// are stopped at once, with the timeouts of their own options.
	PauseTimeout time.Duration
}

// Digests says which values are kept on the objects as digests only. The zero value keeps all values.
type Digests struct {
	// Limit is how many bytes of JSON are kept by value; zero is the limit of annotations.
	Limit int
	// Secrets is true if all values of v1 Secrets are kept as digests.
	Secrets bool
	// Keys are the secrets of the digests, the present one first; without any, it is the uid of the object.
	Keys [][]byte
}

// Resolved returns the settings with their defaults.
func (s Settings) Resolved() Settings {
	if s.ErrorDelays == nil {
		s.ErrorDelays = DefaultErrorDelays
	}
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
