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

// operatorSimulation runs several operators that share one peering object. It checks that no two of them act at the
// same time.
type operatorSimulation struct {
	t         *testing.T
	fixture   *memberFixture
	mu        sync.Mutex
	operators []*simulatedOperator
	log       []string
	lastActed time.Time        // when an operator acted last
	states    []map[string]any // the states of the object after each write
}

func newSimulation(t *testing.T) *operatorSimulation {
	t.Helper()
	return &operatorSimulation{t: t, fixture: newMemberFixture(t, vectors.Fields{}, peering.Member{}),
		lastActed: time.Now()}
}

// simulatedOperator is one operator: a gate, attempts while it is open, a clock, and a connection.
type simulatedOperator struct {
	simulation      *operatorSimulation
	member          peering.Member
	clockSkew       time.Duration // how far its clock is ahead
	attemptDuration time.Duration // how long an attempt takes
	connection      *memapi.Connection

	closed         bool
	running        int
	idle           chan struct{}
	writableUntil  time.Time
	isDisconnected bool
	dead           bool
	stop           context.CancelFunc
	done           chan struct{}
}

// startOperator starts an operator.
func (w *operatorSimulation) startOperator(identity string, priority int, clock time.Duration) *simulatedOperator {
	w.t.Helper()
	r := &simulatedOperator{
		simulation: w, clockSkew: clock, attemptDuration: time.Second, connection: w.fixture.server.Connect(),
		done: make(chan struct{}),
	}
	r.connection.Before = func(ctx context.Context, _ memapi.Request) error {
		w.mu.Lock()
		cut := r.isDisconnected
		w.mu.Unlock()
		if cut {
			<-ctx.Done()
			return errors.New("nobody answers")
		}
		return nil
	}
	r.member = peering.Member{
		Self: peering.Self{Identity: identity, Priority: priority, Elects: true}, Name: "default",
		Busy: r.attemptCount, Idle: r.idleChannel, SilentPeerWait: 5 * time.Second,
	}
	w.mu.Lock()
	w.operators = append(w.operators, r)
	w.mu.Unlock()
	var ctx context.Context
	ctx, r.stop = context.WithCancel(w.t.Context())
	go r.runOperator(ctx)
	return r
}

// runOperator runs the operator until it is stopped or dies.
func (r *simulatedOperator) runOperator(ctx context.Context) {
	defer close(r.done)
	api, err := memapi.NewClient(r.connection, r.simulation.fixture.resource)
	if err != nil {
		r.simulation.t.Error(err)
		return
	}
	membership := r.member.JoinObject(ctx, skewedObject{r.simulation.fixture.existingObject(api, "", "default"),
		r.clockSkew, r.simulation}, r)
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
	for heard := r.simulation.history(); ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
		if !r.isConnected() {
			continue
		}
		all := r.simulation.history()
		for _, object := range append(all[len(heard):], r.simulation.object()) {
			membership.ObserveObject(shiftObject(object, -r.clockSkew))
		}
		heard = all
	}
}

func (r *simulatedOperator) isConnected() bool {
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	return !r.isDisconnected && !r.dead
}

// attempt runs an attempt if the gate is open, and reports an error if another operator is running one.
func (r *simulatedOperator) attempt() {
	r.simulation.mu.Lock()
	if r.closed || r.dead || !r.writableUntil.IsZero() && !time.Now().Before(r.writableUntil) {
		r.simulation.mu.Unlock()
		return
	}
	for _, other := range r.simulation.operators {
		if other != r && other.running > 0 && !other.dead {
			r.simulation.t.Errorf("%s: %s begins while %s acts\n%s", r.simulation.elapsedText(), r.name(), other.name(),
				strings.Join(r.simulation.log, "\n"))
		}
	}
	if r.running == 0 {
		r.idle = nil
	}
	r.running++
	r.simulation.lastActed = time.Now()
	takes := r.attemptDuration
	r.simulation.mu.Unlock()
	time.Sleep(takes)
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	if r.running--; r.running == 0 && r.idle != nil {
		close(r.idle)
	}
}

// setAttemptDuration sets how long attempts take.
func (r *simulatedOperator) setAttemptDuration(takes time.Duration) {
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	r.attemptDuration = takes
}

func (r *simulatedOperator) name() string { return r.member.Self.Identity }

func (r *simulatedOperator) Set(closed bool) {
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	if r.closed != closed {
		r.simulation.logEvent("%s closed %t", r.name(), closed)
	}
	r.closed = closed
}

func (r *simulatedOperator) AllowWritesUntil(end time.Time) {
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	r.writableUntil = end
}

func (r *simulatedOperator) attemptCount() int {
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	return r.running
}

func (r *simulatedOperator) idleChannel() <-chan struct{} {
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	if r.idle == nil {
		r.idle = make(chan struct{})
		if r.running == 0 {
			close(r.idle)
		}
	}
	return r.idle
}

// openOperators returns the operators that may act.
func (w *operatorSimulation) openOperators() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.operators {
		if !r.closed && !r.dead {
			names = append(names, r.name())
		}
	}
	return names
}

func (w *operatorSimulation) requireOpen(when string, names ...string) {
	w.t.Helper()
	if got := w.openOperators(); !slices.Equal(got, names) {
		w.t.Errorf("%s, %s: want %v to act, got %v\n%s", w.elapsedText(), when, names, got, strings.Join(w.log, "\n"))
	}
}

func (w *operatorSimulation) elapsedText() string {
	return time.Since(w.fixture.startTime).Round(time.Millisecond).String()
}

func (w *operatorSimulation) logEvent(format string, args ...any) {
	w.log = append(w.log, w.elapsedText()+" "+fmt.Sprintf(format, args...))
}

// setDisconnected stops or resumes the answers to the operator.
func (r *simulatedOperator) setDisconnected(cut bool) {
	r.simulation.mu.Lock()
	defer r.simulation.mu.Unlock()
	r.simulation.logEvent("%s cut off %t", r.name(), cut)
	r.isDisconnected = cut
}

// kill ends an operator without removing its record.
func (r *simulatedOperator) kill() {
	r.simulation.mu.Lock()
	r.simulation.logEvent("%s dies", r.name())
	r.dead, r.isDisconnected = true, true
	r.simulation.mu.Unlock()
	r.stop()
}

// stopGracefully ends an operator, which removes its record.
func (r *simulatedOperator) stopGracefully() {
	r.stop()
	<-r.done
}

// stopAll ends all operators.
func (w *operatorSimulation) stopAll() {
	for _, r := range w.operators {
		r.setDisconnected(false)
		r.stop()
	}
	for _, r := range w.operators {
		<-r.done
	}
}
