package kopf

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// daemonOption is an option of Daemon.
type daemonOption interface {
	Option
	daemonOption()
}

// timerOption is an option of Timer.
type timerOption interface {
	Option
	timerOption()
}

// backgroundOption is an option of both Daemon and Timer.
type backgroundOption interface {
	daemonOption
	timerOption
}

// limitOption is an option of all verbs with attempts: those for changes, those in the background, indices, and
// activities.
//
//nolint:interfacebloat // a family of options is all of the families that it is for
type limitOption interface {
	changeOption
	backgroundOption
	indexOption
	activityOption
	childOption
}

func (option) daemonOption() {}
func (option) timerOption()  {}

// durationOption sets one of the durations of background handlers.
func durationOption[O Option](
	name string, value time.Duration, field func(*handlers.Background) *time.Duration,
) O {
	return optionOf[O](name, positiveDuration(name, value), func(h *handlers.Handler) { *field(h.Background) = value })
}

// InitialDelay sets how long to wait before the first call, from when the object is first seen or is selected again: a
// duration, or a function of the object. Default: zero. Kopf: initial_delay=.
func InitialDelay[D time.Duration | func(object *Unstructured) time.Duration](delay D) backgroundOption {
	var err error
	var initial func(body map[string]any) (time.Duration, error)
	switch delay := any(delay).(type) {
	case time.Duration:
		err = delayDuration("InitialDelay", delay)
		initial = func(map[string]any) (time.Duration, error) { return delay, nil }
	case func(object *Unstructured) time.Duration:
		if delay == nil {
			err = errors.New("InitialDelay: the function is nil")
		}
		initial = func(body map[string]any) (wait time.Duration, err error) {
			object := &unstructured.Unstructured{Object: body}
			err = containPanic(func() { wait = delay(object.DeepCopy()) })
			return wait, err
		}
	}
	return optionOf[backgroundOption]("InitialDelay", err, func(h *handlers.Handler) {
		h.Background.InitialDelay = initial
	})
}

// Idle makes a timer wait until nothing that matters has changed in the object for so long: status and metadata, but
// for labels and annotations, do not matter. The time counts from when the object was first seen. Kopf: idle=.
func Idle(idle time.Duration) timerOption {
	return durationOption[timerOption]("Idle", idle, func(b *handlers.Background) *time.Duration { return &b.Idle })
}

// Sharp makes the interval count from the beginning of a call instead of its end. Calls that take longer skip the times
// that have passed. Kopf: sharp=True.
func Sharp() timerOption {
	return optionOf[timerOption]("Sharp", nil, func(h *handlers.Handler) { h.Background.Sharp = true })
}

// Jitter makes every interval longer by a random part of itself, up to this share, so that timers of many objects drift
// apart: 0.1 is up to a tenth. Default: none.
func Jitter(share float64) timerOption {
	var err error
	if !(share > 0 && share <= 1) {
		err = fmt.Errorf("Jitter(%g): it is a share of the interval, above 0 and up to 1: 0.1 is a tenth", share)
	}
	return optionOf[timerOption]("Jitter", err, func(h *handlers.Handler) { h.Background.Jitter = share })
}

// CancelBackoff is how long a daemon may go on by its own insight, once it is asked to stop, before its context ends.
// Default: practically not at all. Kopf: cancellation_backoff=.
func CancelBackoff(backoff time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelBackoff", backoff, func(b *handlers.Background) *time.Duration { return &b.CancelBackoff },
	)
}

// CancelTimeout is how long a daemon may go on when its context has ended before it is abandoned, with a line in the
// log: its object is let go then, or the operator exits. Default: none, so the object is held until the daemon has
// ended; an operator that exits waits for 5 seconds. Kopf: cancellation_timeout=.
func CancelTimeout(timeout time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelTimeout", timeout, func(b *handlers.Background) *time.Duration { return &b.CancelTimeout },
	)
}

// CancelPolling is how often the log mentions a daemon that does not end. Default: a minute. Kopf:
// cancellation_polling=.
func CancelPolling(interval time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelPolling", interval, func(b *handlers.Background) *time.Duration { return &b.CancelPolling },
	)
}
