package facade

import (
	"context"
	"os"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// defaultExitLimit is Kopf's.
const defaultExitLimit = 10 * time.Minute

// killed is the exit code of a process that is killed.
const killed = 128 + 9

// exitLimit ends the process if it does not end by itself in time once it has begun to. Kopf:
// process.ultimate_exiting_timeout.
type exitLimit struct {
	op      *Operator
	unwatch func() bool

	mu    sync.Mutex
	over  bool
	began time.Time
	timer *time.Timer
}

// limitExit begins to count when the context ends.
func (op *Operator) limitExit(ctx context.Context) *exitLimit {
	l := &exitLimit{op: op}
	l.unwatch = context.AfterFunc(ctx, l.begin)
	return l
}

// begin begins to count, if it has not begun before. The limit is that of the settings as they are by now: a startup
// may have changed them meanwhile.
func (l *exitLimit) begin() {
	l.op.mu.Lock()
	limit := l.op.settings.values.Process.UltimateExitingTimeout
	l.op.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.IsZero() {
		l.began = time.Now()
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.over || limit == Never {
		return
	}
	l.timer = time.AfterFunc(limit-time.Since(l.began), func() {
		log := logf.Log.WithName(l.op.name)
		log.Error(nil, "Killing the process: it does not end by itself", "timeout", limit.String())
		os.Exit(killed) //nolint:revive // nothing else ends what does not listen
	})
}

// stop is called when the operator has ended: nothing is left to be killed.
func (l *exitLimit) stop() {
	l.unwatch()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}
