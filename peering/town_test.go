package peering_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// operatorSimulation runs several operators that share one peering object. It checks that no two of them act at the same time.
type operatorSimulation struct {
	t      *testing.T
	bench  *bench
	mu     sync.Mutex
	all    []*simulatedOperator
	log    []string
	acting time.Time        // when an operator acted last
	states []map[string]any // the states of the object after each write
}

func newSimulation(t *testing.T) *operatorSimulation {
	t.Helper()
	return &operatorSimulation{t: t, bench: newBench(t, vectors.Fields{}, peering.Member{}), acting: time.Now()}
}

// simulatedOperator is one operator: a gate, attempts while it is open, a clock, and a connection.
type simulatedOperator struct {
	town       *operatorSimulation
	member     peering.Member
	clock      time.Duration // how far its clock is ahead
	takes      time.Duration // how long an attempt takes
	connection *memapi.Connection

	closed  bool
	running int
	idle    chan struct{}
	end     time.Time
	cut     bool
	dead    bool
	stop    context.CancelFunc
	done    chan struct{}
}

// startOperator starts an operator.
func (w *operatorSimulation) startOperator(identity string, priority int, clock time.Duration) *simulatedOperator {
	w.t.Helper()
	r := &simulatedOperator{
		town: w, clock: clock, takes: time.Second, connection: w.bench.server.Connect(), done: make(chan struct{}),
	}
	r.connection.Before = func(ctx context.Context, _ memapi.Request) error {
		w.mu.Lock()
		cut := r.cut
		w.mu.Unlock()
		if cut {
			<-ctx.Done()
			return errors.New("nobody answers")
		}
		return nil
	}
	r.member = peering.Member{
		Self: peering.Self{Identity: identity, Priority: priority, Elects: true}, Name: "default",
		Busy: r.busy, Idle: r.idling, Wait: 5 * time.Second,
	}
	w.mu.Lock()
	w.all = append(w.all, r)
	w.mu.Unlock()
	var ctx context.Context
	ctx, r.stop = context.WithCancel(w.t.Context())
	go r.runOperator(ctx)
	return r
}

// runOperator runs the operator until it is stopped or dies.
func (r *simulatedOperator) runOperator(ctx context.Context) {
	defer close(r.done)
	api, err := memapi.NewClient(r.connection, r.town.bench.resource)
	if err != nil {
		r.town.t.Error(err)
		return
	}
	membership := r.member.JoinObject(ctx, skewed{r.town.bench.existing(api, "", "default"), r.clock, r.town}, r)
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { membership.Run(ctx) })
	parts.Go(func() { r.watch(ctx, membership) })
	parts.Go(func() {
		for ctx.Err() == nil {
			r.attempt()
			time.Sleep(200 * time.Millisecond)
		}
	})
}

// watch passes the states of the object to the operator with a delay, like a watch. Then it passes the present state.
func (r *simulatedOperator) watch(ctx context.Context, membership *peering.Membership) {
	for heard := r.town.history(); ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
		if !r.isConnected() {
			continue
		}
		all := r.town.history()
		for _, object := range append(all[len(heard):], r.town.object()) {
			membership.ObserveObject(shifted(object, -r.clock))
		}
		heard = all
	}
}

func (r *simulatedOperator) isConnected() bool {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	return !r.cut && !r.dead
}

// attempt runs an attempt if the gate is open, and reports an error if another operator is running one.
func (r *simulatedOperator) attempt() {
	r.town.mu.Lock()
	if r.closed || r.dead || !r.end.IsZero() && !time.Now().Before(r.end) {
		r.town.mu.Unlock()
		return
	}
	for _, other := range r.town.all {
		if other != r && other.running > 0 && !other.dead {
			r.town.t.Errorf("%s: %s begins while %s acts\n%s", r.town.now(), r.name(), other.name(),
				strings.Join(r.town.log, "\n"))
		}
	}
	if r.running == 0 {
		r.idle = nil
	}
	r.running++
	r.town.acting = time.Now()
	takes := r.takes
	r.town.mu.Unlock()
	time.Sleep(takes)
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	if r.running--; r.running == 0 && r.idle != nil {
		close(r.idle)
	}
}

// takeLong sets how long attempts take.
func (r *simulatedOperator) takeLong(takes time.Duration) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	r.takes = takes
}

func (r *simulatedOperator) name() string { return r.member.Self.Identity }

func (r *simulatedOperator) Set(closed bool) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	if r.closed != closed {
		r.town.note("%s closed %t", r.name(), closed)
	}
	r.closed = closed
}

func (r *simulatedOperator) AllowWritesUntil(end time.Time) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	r.end = end
}

func (r *simulatedOperator) busy() int {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	return r.running
}

func (r *simulatedOperator) idling() <-chan struct{} {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	if r.idle == nil {
		r.idle = make(chan struct{})
		if r.running == 0 {
			close(r.idle)
		}
	}
	return r.idle
}

// open returns the operators that may act.
func (w *operatorSimulation) open() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.all {
		if !r.closed && !r.dead {
			names = append(names, r.name())
		}
	}
	return names
}

func (w *operatorSimulation) want(when string, names ...string) {
	w.t.Helper()
	if got := w.open(); !slices.Equal(got, names) {
		w.t.Errorf("%s, %s: want %v to act, got %v\n%s", w.now(), when, names, got, strings.Join(w.log, "\n"))
	}
}

func (w *operatorSimulation) now() string {
	return time.Since(w.bench.began).Round(time.Millisecond).String()
}

func (w *operatorSimulation) note(format string, args ...any) {
	w.log = append(w.log, w.now()+" "+fmt.Sprintf(format, args...))
}

// cutOff stops or resumes the answers to the operator.
func (r *simulatedOperator) cutOff(cut bool) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	r.town.note("%s cut off %t", r.name(), cut)
	r.cut = cut
}

// die ends an operator without removing its record.
func (r *simulatedOperator) die() {
	r.town.mu.Lock()
	r.town.note("%s dies", r.name())
	r.dead, r.cut = true, true
	r.town.mu.Unlock()
	r.stop()
}

// leave ends an operator, which removes its record.
func (r *simulatedOperator) leave() {
	r.stop()
	<-r.done
}

// end ends all operators.
func (w *operatorSimulation) end() {
	for _, r := range w.all {
		r.cutOff(false)
		r.stop()
	}
	for _, r := range w.all {
		<-r.done
	}
}
