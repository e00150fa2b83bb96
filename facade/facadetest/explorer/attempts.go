package explorer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// change is what a handler is called for: one change of one object.
type change struct {
	object, handler, reason, diff string
	life                          int // of resume handlers: each life resumes anew; 0 for others
}

// attempt is one call of one handler.
type attempt struct {
	change
	retry   int
	state   string // of the object, as far as handlers look at it
	of      handlers.Family
	lasting bool // a daemon
	process int  // the number of the life

	began, ended time.Duration
	done         bool
	outcome      string
	err          error
}

// about is what a violation of it is about.
func (a *attempt) about() string { return a.handler + " (" + a.reason + ") for " + a.object }

// changes is true if it is called for a change, not in the background.
func (a *attempt) changes() bool { return a.of != handlers.Spawning }

// String is the attempt in a history.
func (a *attempt) String() string {
	about := ""
	if a.object != "" {
		about = " for " + a.object
	}
	if a.reason != "" {
		about = " (" + a.reason + ")" + about
	}
	return fmt.Sprintf("%s #%d%s", a.handler, a.retry+1, about)
}

// observe notes an attempt of this life, and makes its return a point.
func (l *Life) observe(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
	<-l.started
	a := l.enter(call)
	return context.WithValue(ctx, attemptKey{}, a), func(outcome string, err error) { l.leave(a, outcome, err) }
}

func (l *Life) enter(call *handlers.Invocation) *attempt {
	w := l.world
	w.mu.Lock()
	defer w.mu.Unlock()
	a := describe(call, &w.names, l.number)
	if a.began = w.since(); l.dead {
		return a
	}
	if a.changes() {
		w.pulse = time.Now()
	}
	w.active[a] = true
	w.run.attempts = append(w.run.attempts, a)
	w.run.noteAt(a.began, fmt.Sprintf("life %d", l.number), a.String()+" begins")
	return a
}

func (l *Life) leave(a *attempt, outcome string, err error) {
	w := l.world
	w.mu.Lock()
	if delete(w.active, a); l.dead {
		w.mu.Unlock()
		return
	}
	a.ended, a.done, a.outcome, a.err = w.since(), true, outcome, err
	text := a.String() + ": " + outcome
	if err != nil {
		text += ": " + err.Error()
	}
	w.run.noteAt(a.ended, fmt.Sprintf("life %d", l.number), text)
	if a.changes() {
		w.pulse = time.Now()
	} else {
		w.ticked = time.Now()
	}
	w.mu.Unlock()
	if a.object != "" && a.of != handlers.Watching {
		_ = l.reach(point{place: "at-" + w.count("return", label(a.handler+"-for-"+a.object))})
	}
}

func describe(call *handlers.Invocation, names *names, life int) *attempt {
	h := call.Handler
	a := &attempt{
		change: change{handler: h.ID, reason: h.Activity}, of: h.Family, process: life, retry: call.Retry,
		lasting: h.Family == handlers.Spawning && h.Background.Daemon,
	}
	if h.Initial {
		a.life = life
	}
	if call.Cause == nil {
		return a
	}
	a.object = names.of(&unstructured.Unstructured{Object: call.Cause.Body()})
	switch {
	case call.Admission != nil:
		a.reason = call.Admission.Operation
	case call.Cause.Reason != "":
		a.reason = string(call.Cause.Reason)
	default:
		a.reason = call.Cause.Type
	}
	a.diff, a.state = fmt.Sprint(call.Cause.Diff), fmt.Sprint(call.Cause.New)
	return a
}
