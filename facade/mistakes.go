package kopf

import (
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// mistakes are what a handler was told of its use of this package: each is worth one line in the log. Nil is for
// functions that are no handlers.
type mistakes struct {
	looked  atomic.Int32 // how many calls were looked at for changes in place
	inPlace atomic.Bool
	delay   atomic.Bool
	sleep   atomic.Bool
	items   atomic.Bool // fields of list items were lost
	erased  atomic.Bool // by an update with the client

	mu   sync.Mutex
	subs map[uintptr]*mistakes // of sub-handlers by their functions, as there may be any number of ids
}

// firstCalls is how many calls of a handler are looked at: a mistake shows early or in a test, and looking takes time.
const firstCalls = 3

// everyCall is true in test binaries. It cannot be known before the flags are there.
var everyCall = sync.OnceValue(func() bool { return flag.Lookup("test.v") != nil })

// looks tells whether a call that begins is to be looked at for changes in place.
func (m *mistakes) looks() bool {
	switch {
	case m == nil || m.inPlace.Load():
		return false
	case m.looked.Load() < firstCalls && m.looked.Add(1) <= firstCalls:
		return true
	default:
		return everyCall()
	}
}

// ofSub are those of a sub-handler.
func (m *mistakes) ofSub(function uintptr) *mistakes {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sub := m.subs[function]
	if sub == nil {
		sub = &mistakes{}
		if m.subs == nil {
			m.subs = map[uintptr]*mistakes{}
		}
		m.subs[function] = sub
	}
	return sub
}

// noteDelay tells that the delay of an error cannot be meant, if it is so.
func (m *mistakes) noteDelay(log logr.Logger, err error) {
	if m == nil || err == nil || m.delay.Load() {
		return
	}
	var temporary *temporaryError
	if errors.As(err, &temporary) && temporary.unitless() && m.delay.CompareAndSwap(false, true) {
		logging.Warn(log, "Waiting a second after a temporary error: its delay is too short to be meant; logged once "+
			"for the handler", "delay", tooShort(temporary.delay).Error())
	}
}

// noteSleep logs that the duration of a sleep cannot be meant.
func (m *mistakes) noteSleep(log logr.Logger, err error) {
	if m != nil && m.sleep.CompareAndSwap(false, true) {
		logging.Warn(log, "Sleeping for a second: the duration is too short to be meant; logged once for the handler",
			"duration", err.Error())
	}
}

// noteLost tells of changes in place that are lost now that the handler has succeeded.
func (c *Change[T]) noteLost() {
	fields := c.original.Lost(c.call.Working)
	if len(fields) > 0 && c.mistakes.inPlace.CompareAndSwap(false, true) {
		logging.Warn(c.log,
			"Handler changed its copy of the object, which is written nowhere; logged once for the handler",
			"fields", fields, "instead", fmt.Sprintf("Patch(func(object %T) { ... })", c.Object))
	}
}
