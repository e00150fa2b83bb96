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

// town is where several operators share one peering object. It looks that no two of them act at once.
type town struct {
	t      *testing.T
	bench  *bench
	mu     sync.Mutex
	all    []*resident
	log    []string
	acting time.Time        // when somebody acted last
	states []map[string]any // of the object, as writers have left it
}

func newTown(t *testing.T) *town {
	t.Helper()
	return &town{t: t, bench: newBench(t, vectors.Fields{}, peering.Member{}), acting: time.Now()}
}

// resident is one operator: a gate, attempts while it is open, a clock, and a connection.
type resident struct {
	town       *town
	member     peering.Member
	clock      time.Duration // how far it is ahead
	takes      time.Duration // an attempt
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

// settle has an operator begin.
func (w *town) settle(identity string, priority int, clock time.Duration) *resident {
	w.t.Helper()
	r := &resident{
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
	go r.live(ctx)
	return r
}

// live keeps the operator in the town until it is stopped, or dies.
func (r *resident) live(ctx context.Context) {
	defer close(r.done)
	api, err := memapi.NewClient(r.connection, r.town.bench.resource)
	if err != nil {
		r.town.t.Error(err)
		return
	}
	membership := r.member.Join(ctx, skewed{r.town.bench.existing(api, "", "default"), r.clock, r.town}, r)
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

// watch has the operator hear of the object late, and of each of its states, like a watch; and of how it is.
func (r *resident) watch(ctx context.Context, membership *peering.Membership) {
	for heard := r.town.history(); ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
		if !r.hears() {
			continue
		}
		all := r.town.history()
		for _, object := range append(all[len(heard):], r.town.object()) {
			membership.Observe(shifted(object, -r.clock))
		}
		heard = all
	}
}

func (r *resident) hears() bool {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	return !r.cut && !r.dead
}

// attempt does something if the gate is open, and complains if another operator does so, too.
func (r *resident) attempt() {
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
func (r *resident) takeLong(takes time.Duration) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	r.takes = takes
}

func (r *resident) name() string { return r.member.Self.Identity }

func (r *resident) Set(closed bool) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	if r.closed != closed {
		r.town.note("%s closed %t", r.name(), closed)
	}
	r.closed = closed
}

func (r *resident) AllowWritesUntil(end time.Time) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	r.end = end
}

func (r *resident) busy() int {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	return r.running
}

func (r *resident) idling() <-chan struct{} {
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

// open tells who may act.
func (w *town) open() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.all {
		if !r.closed && !r.dead {
			names = append(names, r.name())
		}
	}
	return names
}

func (w *town) want(when string, names ...string) {
	w.t.Helper()
	if got := w.open(); !slices.Equal(got, names) {
		w.t.Errorf("%s, %s: want %v to act, got %v\n%s", w.now(), when, names, got, strings.Join(w.log, "\n"))
	}
}

func (w *town) now() string { return time.Since(w.bench.began).Round(time.Millisecond).String() }

func (w *town) note(format string, args ...any) {
	w.log = append(w.log, w.now()+" "+fmt.Sprintf(format, args...))
}

// cutOff has nobody answer the operator, or answers it again.
func (r *resident) cutOff(cut bool) {
	r.town.mu.Lock()
	defer r.town.mu.Unlock()
	r.town.note("%s cut off %t", r.name(), cut)
	r.cut = cut
}

// die ends an operator without a farewell.
func (r *resident) die() {
	r.town.mu.Lock()
	r.town.note("%s dies", r.name())
	r.dead, r.cut = true, true
	r.town.mu.Unlock()
	r.stop()
}

// leave ends an operator in good order.
func (r *resident) leave() {
	r.stop()
	<-r.done
}

// end ends all.
func (w *town) end() {
	for _, r := range w.all {
		r.cutOff(false)
		r.stop()
	}
	for _, r := range w.all {
		<-r.done
	}
}
