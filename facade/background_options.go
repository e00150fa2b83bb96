package kopf

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
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

// InitialDelay delays the first call after the object is selected. Default: zero. Kopf: initial_delay=.
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
			err = panics.Contain(func() error { wait = delay(object.DeepCopy()); return nil })
			return wait, err
		}
	}
	return optionOf[backgroundOption]("InitialDelay", err, func(h *handlers.Handler) {
		h.Background.InitialDelay = initial
	})
}

// Idle makes a timer wait until the object has not changed for this time, except in its status and system metadata.
// Kopf: idle=.
func Idle(idle time.Duration) timerOption {
	return durationOption[timerOption]("Idle", idle, func(b *handlers.Background) *time.Duration { return &b.Idle })
}

// Sharp starts the interval at the beginning of a call; long calls skip ticks. Kopf: sharp=True.
func Sharp() timerOption {
	return optionOf[timerOption]("Sharp", nil, func(h *handlers.Handler) { h.Background.Sharp = true })
}

// Jitter lengthens each interval by a random share of up to this one: 0.1 is a tenth.
func Jitter(share float64) timerOption {
	var err error
	if !(share > 0 && share <= 1) {
		err = fmt.Errorf("Jitter(%g): it is a share of the interval, above 0 and up to 1: 0.1 is a tenth", share)
	}
	return optionOf[timerOption]("Jitter", err, func(h *handlers.Handler) { h.Background.Jitter = share })
}

// CancelBackoff is the time from Stopping to the end of a daemon's context. Default:
// [BackgroundSettings].InstantExitTimeout. Kopf: cancellation_backoff=.
func CancelBackoff(backoff time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelBackoff", backoff, func(b *handlers.Background) *time.Duration { return &b.CancelBackoff },
	)
}

// CancelTimeout is the time from the end of the context until a daemon is abandoned. Default: no limit; an exiting
// operator waits for 5 seconds. Kopf: cancellation_timeout=.
func CancelTimeout(timeout time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelTimeout", timeout, func(b *handlers.Background) *time.Duration { return &b.CancelTimeout },
	)
}

// CancelPolling is how often an unfinished daemon is logged. Default: a minute. Kopf: cancellation_polling=.
func CancelPolling(interval time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelPolling", interval, func(b *handlers.Background) *time.Duration { return &b.CancelPolling },
	)
}
