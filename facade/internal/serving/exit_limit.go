package serving

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// DefaultExitLimit is the default limit, as in Kopf.
const DefaultExitLimit = 10 * time.Minute

// killedExitCode is the exit code of a process that was killed by SIGKILL, as shells report it.
const killedExitCode = 128 + 9

// exitLimit kills the process if one run of a program does not exit in time. Kopf: process.ultimate_exiting_timeout.
type exitLimit struct {
	log logr.Logger
	// limit returns the current limit. A negative one never ends.
	limit func() time.Duration
	// cancelStart stops the start of the limit by the context.
	cancelStart func() bool

	// mu guards the fields below.
	mu        sync.Mutex
	hasExited bool
	startTime time.Time
	timer     *time.Timer
}

// watchExit starts the limit when the context ends. It calls limit at that time, because a startup handler can change
// the value. With a negative value, the exit can take any time.
func watchExit(ctx context.Context, log logr.Logger, limit func() time.Duration) *exitLimit {
	l := &exitLimit{log: log, limit: limit}
	l.cancelStart = context.AfterFunc(ctx, l.startCountdown)
	return l
}

// startCountdown starts the limit, unless it has started, and applies the current value. It can be called several
// times: the time counts from the first call.
func (l *exitLimit) startCountdown() {
	// Not under the lock, because limit takes the lock of the operator.
	limit := l.limit()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.startTime.IsZero() {
		l.startTime = time.Now()
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.hasExited || limit < 0 {
		return
	}
	l.timer = time.AfterFunc(limit-time.Since(l.startTime), func() { l.killProcess(limit) })
}

// killProcess ends the process. It takes no lock and waits for the log for at most a second, because either can be
// stuck.
func (l *exitLimit) killProcess(limit time.Duration) {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		l.log.Error(nil, "Killing the process: it does not end by itself", "timeout", limit.String())
	}()
	select {
	case <-logged:
	case <-time.After(time.Second):
	}
	os.Exit(killedExitCode) //nolint:revive // the process does not react to anything else
}

// stop ends the limit of a program that has exited by itself.
func (l *exitLimit) stop() {
	l.cancelStart()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hasExited = true
	if l.timer != nil {
		l.timer.Stop()
	}
}
