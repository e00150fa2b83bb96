package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

var errNotYet = errors.New("not yet")

// timesheet notes when a handler was called for an object.
type timesheet struct {
	mu    sync.Mutex
	calls map[string][]time.Time
}

func (j *timesheet) note(id string, c *handlers.Call) (name string, call int) {
	name = (&unstructured.Unstructured{Object: c.Cause.Body}).GetName()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.calls == nil {
		j.calls = map[string][]time.Time{}
	}
	j.calls[id+" "+name] = append(j.calls[id+" "+name], time.Now())
	return name, len(j.calls[id+" "+name])
}

func (j *timesheet) of(id, name string) []time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]time.Time{}, j.calls[id+" "+name]...)
}

// handler notes its calls. It hangs on objects that are named for that, until the operator exits.
func (j *timesheet) handler(id string, reason cause.Reason, act func(name string, call int) error) *handlers.Handler {
	return &handlers.Handler{ID: id, Reason: reason, Policy: handlers.Policy{Backoff: ptr.To(time.Second)},
		Call: func(ctx context.Context, c *handlers.Call) error {
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

// within expects a call within a time.
func (j *timesheet) within(t *testing.T, id, name string, calls int, since time.Time, limit time.Duration) {
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

func (p people) createMany(kind, prefix string, count int) {
	p.t.Helper()
	for n := range count {
		p.create(kind, fmt.Sprint(prefix, "-", n))
	}
}

// Whoever hangs in a creation holds no place of the deletions: neither of the first attempts, nor of the following
// ones.
func TestDeletionsBesideHangingCreations(t *testing.T) {
	for _, workers := range []int{2, 10, 0} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &timesheet{}
				p := newPeople(t, server)
				p.create("ConfigMap", "honest")
				stop := operateAll(t, server, reconcilers.Options{Workers: workers},
					to(t, "configmaps", j.handler("c", cause.Create, nil)),
					to(t, "configmaps", j.handler("d", cause.Delete, func(_ string, call int) error {
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
				j.within(t, "d", "honest", 1, began, 10*time.Millisecond)
				j.within(t, "d", "honest", 3, began, 2100*time.Millisecond)
				if left := p.count("ConfigMap"); left != 130 {
					t.Errorf("%d objects are left, want those that hang", left)
				}
			})
		})
	}
}

// An object that was being deleted before the start is listed among those whose handlers hang.
func TestListedDeletionsBesideHangingResumptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &timesheet{}
		p := newPeople(t, server)
		p.createMany("ConfigMap", "hanging-r", 130)
		p.create("ConfigMap", "zoe")
		hold := to(t, "configmaps", j.handler("d", cause.Delete, nil))
		stop := operateAll(t, server, reconcilers.Options{}, hold)
		time.Sleep(5 * time.Second)
		stop()
		p.remove("ConfigMap", "zoe")
		resume := j.handler("r", "", nil)
		resume.Initial = true
		began := time.Now()
		stop = operateAll(t, server, reconcilers.Options{Workers: 2}, hold, to(t, "configmaps", resume))
		defer stop()
		time.Sleep(5 * time.Second)
		j.within(t, "d", "zoe", 1, began, 2*time.Second)
	})
}

// Nor do deletions that hang keep others from being created.
func TestCreationsBesideHangingDeletions(t *testing.T) {
	for _, workers := range []int{2, 10, 0} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &timesheet{}
				p := newPeople(t, server)
				p.createMany("ConfigMap", "hanging-d", 130)
				stop := operateAll(t, server, reconcilers.Options{Workers: workers},
					to(t, "configmaps", j.handler("c", cause.Create, nil)),
					to(t, "configmaps", j.handler("d", cause.Delete, nil)))
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
					j.within(t, "c", fmt.Sprint("honest-", n), 1, began, 100*time.Millisecond)
				}
			})
		})
	}
}

// Objects that are edited again and again leave turns to retries and resumptions, and ticks need none.
func TestRetriesAndTicksBesideHotObjects(t *testing.T) {
	const hot, workers, span = 60, 10, 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &timesheet{}
		p := newPeople(t, server)
		p.create("ConfigMap", "calm")
		tick := timer("t", time.Second, func(_ context.Context, c *handlers.Call) error { j.note("t", c); return nil })
		tick.Filters = []handlers.Filter{func(_ context.Context, c *cause.Cause) (bool, error) {
			return (&unstructured.Unstructured{Object: c.Body}).GetName() == "calm", nil
		}}
		stop := operateAll(t, server, reconcilers.Options{Workers: workers},
			to(t, "configmaps", j.handler("c", cause.Create, func(name string, _ int) error {
				if name == "calm" {
					return errNotYet
				}
				return nil
			})),
			to(t, "configmaps", j.handler("u", cause.Update, func(
				string, int,
			) error {
				time.Sleep(500 * time.Millisecond)
				return nil
			})),
			to(t, "configmaps", tick))
		defer stop()
		time.Sleep(time.Second)
		p.createMany("ConfigMap", "hot", hot)
		time.Sleep(time.Second)
		edits := 0
		edit := func(until time.Time) {
			for ; time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
				edits++
				for n := range hot {
					p.label("ConfigMap", fmt.Sprint("hot-", n), fmt.Sprint(edits))
				}
			}
		}
		edit(time.Now().Add(5 * time.Second))
		ticks, retries := len(j.of("t", "calm")), len(j.of("c", "calm"))
		edit(time.Now().Add(span))
		ticks, retries = len(j.of("t", "calm"))-ticks, len(j.of("c", "calm"))-retries
		least := 1000
		for n := range hot {
			least = min(least, len(j.of("u", fmt.Sprint("hot-", n))))
		}
		t.Logf(
			"beside %d hot objects, each updated at least %d times: %d ticks and %d retries of 20", hot, least, ticks,
			retries,
		)
		// A retry is written down, and so its object takes a turn among the changed ones as well.
		if ticks < 15 || retries < least/2 {
			t.Errorf("beside hot objects, %d ticks and %d retries of 20", ticks, retries)
		}
		if least < 6 {
			t.Errorf("a hot object was updated %d times: they share what is left", least)
		}
	})
}

// What waits for a place does not hold up the exit, and is handled by whoever comes next.
func TestExitWhileRequestsWaitForPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &timesheet{}
		p := newPeople(t, server)
		stop := operateAll(
			t, server, reconcilers.Options{Workers: 10}, to(t, "configmaps", j.handler("c", cause.Create, nil)),
		)
		p.createMany("ConfigMap", "hanging-c", 20)
		time.Sleep(2 * time.Second)
		p.createMany("ConfigMap", "honest", 50)
		time.Sleep(2 * time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the exit took %s", took)
		}
		if calls := j.of("c", "honest-0"); len(calls) != 0 {
			t.Fatal("nothing waited")
		}
		began = time.Now()
		stop = operateAll(t, server, reconcilers.Options{}, to(t, "configmaps", j.handler("c", cause.Create, nil)))
		defer stop()
		time.Sleep(3 * time.Second)
		for n := range 50 {
			j.within(t, "c", fmt.Sprint("honest-", n), 1, began, 2*time.Second)
		}
	})
}

// Workers(1) is for handlers that must never run beside each other: namespaces make no difference.
func TestWorkersAreSharedByNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		var running, most, calls atomic.Int64
		alone := &handlers.Handler{ID: "c", Reason: cause.Create, Call: func(context.Context, *handlers.Call) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			calls.Add(1)
			return nil
		}}
		stop := operateAll(
			t, server, reconcilers.Options{Workers: 1, Namespaces: []string{"a", "b", "c"}}, to(t, "configmaps", alone),
		)
		defer stop()
		time.Sleep(time.Second)
		for n := range 30 {
			o := p.object("ConfigMap", fmt.Sprint("o", n))
			o.SetNamespace([]string{"a", "b", "c"}[n%3])
			if err := p.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(40 * time.Second)
		if most.Load() != 1 || calls.Load() != 30 {
			t.Errorf("%d at once, %d of 30 done in 40 s of 1 s each", most.Load(), calls.Load())
		}
	})
}
