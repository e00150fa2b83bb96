package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

var errNotYet = errors.New("not yet")

// callRecorder records the times of the calls of handlers by object.
type callRecorder struct {
	mu    sync.Mutex
	calls map[string][]time.Time
}

func (j *callRecorder) note(id string, c *handlers.Invocation) (name string, call int) {
	name = (&unstructured.Unstructured{Object: c.Cause.Body()}).GetName()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.calls == nil {
		j.calls = map[string][]time.Time{}
	}
	j.calls[id+" "+name] = append(j.calls[id+" "+name], time.Now())
	return name, len(j.calls[id+" "+name])
}

func (j *callRecorder) of(id, name string) []time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]time.Time{}, j.calls[id+" "+name]...)
}

// handler returns a handler that records its calls. Objects with the prefix "hanging-" and its id block it until the
// operator exits.
func (j *callRecorder) handler(
	id string, reason cause.Reason, act func(name string, call int) error,
) *handlers.Handler {
	return &handlers.Handler{ID: id, Reason: reason, Policy: handlers.Policy{Backoff: ptr.To(time.Second)},
		Call: func(ctx context.Context, c *handlers.Invocation) error {
			name, call := j.note(id, c)
			if strings.HasPrefix(name, "hanging-"+id) {
				<-ctx.Done()
				return ctx.Err()
			}
			if act == nil {
				return nil
			}
			return act(name, call)
		}}
}

// requireCall requires a call within a time.
func (j *callRecorder) requireCall(t *testing.T, id, name string, calls int, since time.Time, limit time.Duration) {
	t.Helper()
	times := j.of(id, name)
	if len(times) < calls {
		t.Errorf("%s of %s was called %d times, want %d", id, name, len(times), calls)
		return
	}
	if took := times[calls-1].Sub(since); took > limit {
		t.Errorf("call %d of %s of %s came after %s, want at most %s", calls, id, name, took, limit)
	}
}

// TestDeletionsBesideHangingCreations shows that creations that hang do not occupy the slots of deletions, neither for
// first attempts nor for retries.
func TestDeletionsBesideHangingCreations(t *testing.T) {
	for _, workers := range []int{2, 10, 0} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &callRecorder{}
				p := newDirectClient(t, server)
				p.create("ConfigMap", "honest")
				stop := operateAll(t, server, reconcilers.Options{Settings: reconcilers.Settings{Workers: workers}},
					registrationFor(t, "configmaps", j.handler("c", cause.Create, nil)),
					registrationFor(t, "configmaps", j.handler("d", cause.Delete, func(_ string, call int) error {
						if call < 3 {
							return errNotYet
						}
						return nil
					})))
				defer stop()
				time.Sleep(time.Second)
				p.createMany("ConfigMap", "hanging-c", 130)
				time.Sleep(time.Second)
				began := time.Now()
				p.remove("ConfigMap", "honest")
				time.Sleep(5 * time.Second)
				j.requireCall(t, "d", "honest", 1, began, 10*time.Millisecond)
				j.requireCall(t, "d", "honest", 3, began, 2100*time.Millisecond)
				if left := p.count("ConfigMap"); left != 130 {
					t.Errorf("%d objects are left, want those whose handlers hang", left)
				}
			})
		})
	}
}

// TestListedDeletionsBesideHangingResumptions shows that an object listed as being deleted is handled although the
// handlers of other listed objects hang.
func TestListedDeletionsBesideHangingResumptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &callRecorder{}
		p := newDirectClient(t, server)
		p.createMany("ConfigMap", "hanging-r", 130)
		p.create("ConfigMap", "zoe")
		hold := registrationFor(t, "configmaps", j.handler("d", cause.Delete, nil))
		stop := operateAll(t, server, reconcilers.Options{}, hold)
		time.Sleep(5 * time.Second)
		stop()
		p.remove("ConfigMap", "zoe")
		resume := j.handler("r", "", nil)
		resume.Initial = true
		began := time.Now()
		stop = operateAll(
			t,
			server,
			reconcilers.Options{Settings: reconcilers.Settings{Workers: 2}},
			hold,
			registrationFor(t, "configmaps", resume),
		)
		defer stop()
		time.Sleep(5 * time.Second)
		j.requireCall(t, "d", "zoe", 1, began, 2*time.Second)
	})
}

// TestCreationsBesideHangingDeletions shows that deletions that hang do not occupy the slots of creations.
func TestCreationsBesideHangingDeletions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for _, workers := range []int{2, 10, 0} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &callRecorder{}
				p := newDirectClient(t, server)
				p.createMany("ConfigMap", "hanging-d", 130)
				stop := operateAll(t, server, reconcilers.Options{Settings: reconcilers.Settings{Workers: workers}},
					registrationFor(t, "configmaps", j.handler("c", cause.Create, nil)),
					registrationFor(t, "configmaps", j.handler("d", cause.Delete, nil)))
				defer stop()
				time.Sleep(5 * time.Second)
				for n := range 130 {
					p.remove("ConfigMap", fmt.Sprint("hanging-d-", n))
				}
				time.Sleep(time.Second)
				began := time.Now()
				p.createMany("ConfigMap", "honest", 20)
				time.Sleep(time.Second)
				for n := range 20 {
					j.requireCall(t, "c", fmt.Sprint("honest-", n), 1, began, 100*time.Millisecond)
				}
			})
		})
	}
}

// stormResult holds the measurements of the honest objects in a storm.
type stormResult struct {
	slowestDeletion,
	// the slowest deletion since its request; the longest time between two ticks of one object
	longestTickGap time.Duration
	deleted, ticks int
}

// storm edits and deletes honest objects with timers of a second, with or without objects that hang and fail.
func storm(t *testing.T, among bool) (w stormResult) {
	const honest, minute = 30, time.Minute
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &callRecorder{}
		p := newDirectClient(t, server)
		is := func(name, what string) bool { return strings.HasPrefix(name, what) }
		act := func(name string, _ int) error {
			if is(name, "failing") {
				return errNotYet
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		tick := timer("t", time.Second, func(ctx context.Context, c *handlers.Invocation) error {
			if name, _ := j.note("t", c); is(name, "hanging") {
				<-ctx.Done()
			}
			return nil
		})
		stop := operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", j.handler("c", cause.Create, act)),
			registrationFor(t, "configmaps", j.handler("u", cause.Update, act)),
			registrationFor(t, "configmaps", j.handler("d", cause.Delete, act)),
			registrationFor(t, "configmaps", tick))
		defer stop()
		p.createMany("ConfigMap", "honest", honest)
		time.Sleep(10 * time.Second)
		if among {
			p.createMany("ConfigMap", "hanging-c", 120)
			p.createMany("ConfigMap", "hanging-d", 60)
			p.createMany("ConfigMap", "failing", 120)
			time.Sleep(10 * time.Second)
			for n := range 60 {
				p.remove("ConfigMap", fmt.Sprint("hanging-d-", n))
				p.remove("ConfigMap", fmt.Sprint("failing-", n))
			}
		}
		began, removed := time.Now(), map[string]time.Time{}
		for step := range honest {
			for n := step; n < honest; n++ {
				p.label("ConfigMap", fmt.Sprint("honest-", n), fmt.Sprint(step))
			}
			name := fmt.Sprint("honest-", step)
			removed[name] = time.Now()
			p.remove("ConfigMap", name)
			time.Sleep(minute / honest)
		}
		time.Sleep(minute)
		for name, at := range removed {
			if times := j.of("d", name); len(times) > 0 {
				w.deleted, w.slowestDeletion = w.deleted+1, max(w.slowestDeletion, times[0].Sub(at))
			}
			last := began
			for _, at := range j.of("t", name) {
				if at.After(began) {
					w.ticks, w.longestTickGap, last = w.ticks+1, max(w.longestTickGap, at.Sub(last)), at
				}
			}
		}
	})
	return w
}

// TestObjectsBesideFailingOnes shows that objects that hang or fail hardly delay the deletions and ticks of others.
func TestObjectsBesideFailingOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	alone, among := storm(t, false), storm(t, true)
	t.Logf(
		"alone: the slowest deletion after %s, the slowest tick after %s, %d deletions, %d ticks",
		alone.slowestDeletion,
		alone.longestTickGap, alone.deleted, alone.ticks,
	)
	t.Logf(
		"among: the slowest deletion after %s, the slowest tick after %s, %d deletions, %d ticks",
		among.slowestDeletion,
		among.longestTickGap, among.deleted, among.ticks,
	)
	if among.deleted != alone.deleted || among.ticks < alone.ticks*3/4 {
		t.Errorf(
			"%d deletions and %d ticks alone, %d and %d among others", alone.deleted, alone.ticks, among.deleted,
			among.ticks,
		)
	}
	if among.longestTickGap > 2*alone.longestTickGap || among.slowestDeletion > alone.slowestDeletion+time.Second {
		t.Errorf(
			"the slowest deletion and tick: %s and %s alone, %s and %s among others", alone.slowestDeletion,
			alone.longestTickGap,
			among.slowestDeletion, among.longestTickGap,
		)
	}
}
