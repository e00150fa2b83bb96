package exitlimit

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Default is the limit of who sets none; it is Kopf's.
const Default = 10 * time.Minute

// killed is the exit code of a process that is killed.
const killed = 128 + 9

// Limit is that of one run of a program. Kopf: process.ultimate_exiting_timeout.
type Limit struct {
	log     logr.Logger
	limit   func() time.Duration
	unwatch func() bool

	mu    sync.Mutex
	over  bool
	began time.Time
	timer *time.Timer
}

// Watch begins to count when the context ends. The limit is asked for then, as it may change until then; a negative one
// is none.
func Watch(ctx context.Context, log logr.Logger, limit func() time.Duration) *Limit {
	l := &Limit{log: log, limit: limit}
	l.unwatch = context.AfterFunc(ctx, l.Begin)
	return l
}

// Begin begins to count, if that has not begun before, and takes the limit as it is by now.
func (l *Limit) Begin() {
	limit := l.limit()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.IsZero() {
		l.began = time.Now()
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.over || limit < 0 {
		return
	}
	l.timer = time.AfterFunc(limit-time.Since(l.began), func() { l.kill(limit) })
}

// kill ends the process. The log is told, unless it is what hangs.
func (l *Limit) kill(limit time.Duration) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		l.log.Error(nil, "Killing the process: it does not end by itself", "timeout", limit.String())
	}()
	select {
	case <-told:
	case <-time.After(time.Second):
	}
	os.Exit(killed) //nolint:revive // nothing else ends what does not listen
}

// Stop is for a program that has ended by itself: nothing is left to be killed.
func (l *Limit) Stop() {
	l.unwatch()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}
