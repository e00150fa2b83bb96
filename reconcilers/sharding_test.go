package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// rangeCount is the number of ranges in these tests.
const rangeCount = 4

// replica is one process of a sharded operator. It records the calls of its handlers.
type replica struct {
	t    *testing.T
	gate *reconcilers.Gate
	held *namespaces.LiveSet[int]

	state *health.Health
	all   *indexes.ObjectIndex // names of all objects
	own   *indexes.ObjectIndex // names of the objects in its ranges

	mu      sync.Mutex
	calls   map[string]int  // by handler and object
	running map[string]bool // daemons, by object
	deleted []string        // in order: names for which the event handler has returned, and uids that are gone
}

// newReplica starts a replica that holds ranges.
func newReplica(t *testing.T, server *memapi.Server, held ...int) *replica {
	t.Helper()
	r := &replica{
		t: t, gate: &reconcilers.Gate{}, held: namespaces.NewLiveSet[int](), state: health.New(), all: indexes.New(),
		own: indexes.New(), calls: map[string]int{}, running: map[string]bool{},
	}
	r.held.Replace(held)
	index := func(id string, store *indexes.ObjectIndex, byRange bool) *handlers.Handler {
		return &handlers.Handler{ID: id, Family: handlers.Indexing, Index: &handlers.IndexWork{
			Store: store, ByRange: byRange,
			Call: func(_ context.Context, c *handlers.Invocation) (map[any]any, bool, error) {
				return map[any]any{nameOf(c): true}, false, nil
			},
		}}
	}
	stop := operateAll(t, server, reconcilers.Options{
		Gate: r.gate, Ranges: &sharding.OwnRanges{Count: rangeCount, Held: r.held}, Health: r.state,
		OnGone: func(uid types.UID) { r.noteDeleted(string(uid)) },
	},
		registrationFor(t, "configmaps",
			&handlers.Handler{ID: "create", Reason: cause.Create, Call: r.count("create")}),
		registrationFor(t, "configmaps",
			&handlers.Handler{ID: "update", Reason: cause.Update, Call: r.count("update")}),
		registrationFor(t, "configmaps", &handlers.Handler{ID: "resume", Initial: true, Call: r.count("resume")}),
		registrationFor(t, "configmaps", daemon("daemon", handlers.BackgroundOptions{}, r.runDaemon)),
		registrationFor(t, "configmaps", &handlers.Handler{
			ID: "event", Family: handlers.Watching, Call: func(_ context.Context, c *handlers.Invocation) error {
				if c.Cause.EventType == "DELETED" {
					time.Sleep(time.Second)
					r.noteDeleted(nameOf(c))
				}
				return nil
			},
		}),
		registrationFor(t, "configmaps", index("all", r.all, false)),
		registrationFor(t, "configmaps", index("own", r.own, true)),
	)
	t.Cleanup(stop)
	return r
}

// nameOf returns the name of the object.
func nameOf(c *handlers.Invocation) string {
	metadata, _ := c.Cause.Body()["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// count returns a handler that counts its calls.
func (r *replica) count(id string) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls[id+" "+nameOf(c)]++
		return nil
	}
}

// noteDeleted records a step of the deletion of an object.
func (r *replica) noteDeleted(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.deleted, what) {
		r.deleted = append(r.deleted, what)
	}
}

// deletions returns the recorded steps.
func (r *replica) deletions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deleted)
}

// requireReady requires that all checks of readiness pass.
func (r *replica) requireReady(when string) {
	r.t.Helper()
	for _, check := range r.state.ReadyChecks() {
		if err := check.Run(); err != nil {
			r.t.Errorf("%s, a replica is not ready: %s: %v", when, check.Name, err)
		}
	}
}

// runDaemon runs until it is stopped.
func (r *replica) runDaemon(_ context.Context, c *handlers.Invocation) error {
	r.mu.Lock()
	r.running[nameOf(c)] = true
	r.mu.Unlock()
	<-c.LiveObject.Stopping()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, nameOf(c))
	return nil
}

// take returns the calls since the last take: their numbers by handler, and objects with more than one call.
func (r *replica) take() (byHandler map[string]int, repeated []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	byHandler = map[string]int{}
	for call, n := range r.calls {
		var id, name string
		_, _ = fmt.Sscan(call, &id, &name)
		if byHandler[id]++; n > 1 {
			repeated = append(repeated, call)
		}
	}
	clear(r.calls)
	return byHandler, repeated
}

// daemons returns how many daemons are running.
func (r *replica) daemons() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

// leave gives up a range as a membership does: it closes the gate, waits for the running work, and takes the range out.
func (r *replica) leave(index int) {
	r.gate.RangeGate(index).Set(true)
	<-r.gate.RangeGate(index).Idle()
	held, _ := r.held.Current()
	r.held.Replace(slices.DeleteFunc(slices.Clone(held), func(i int) bool { return i == index }))
}

// add takes a range over.
func (r *replica) add(index int) {
	held, _ := r.held.Current()
	r.held.Replace(append(slices.Clone(held), index))
	r.gate.RangeGate(index).Set(false)
}

// requireCalls requires the numbers of objects for which handlers were called since the last check, once each.
func (r *replica) requireCalls(when string, want map[string]int) {
	r.t.Helper()
	got, repeated := r.take()
	for _, id := range []string{"create", "update", "resume"} {
		if got[id] != want[id] {
			r.t.Errorf("%s: %s was called for %d objects, want %d", when, id, got[id], want[id])
		}
	}
	if len(repeated) > 0 {
		r.t.Errorf("%s: called more than once: %q", when, repeated)
	}
}

// objectsByRange returns the number of config maps in each range.
func objectsByRange(p directClient, names []string) (counts [rangeCount]int) {
	p.t.Helper()
	for _, name := range names {
		counts[sharding.IndexOf(p.get("ConfigMap", name).GetUID(), rangeCount)]++
	}
	return counts
}

// TestSharedObjects shows that each replica handles the objects of its ranges and no others, with an API server that
// filters by ranges and with one that does not; that a range moves without lost or repeated calls, with its daemons;
// and that indices have all objects, or those of the own ranges.
func TestSharedObjects(t *testing.T) {
	for name, ignores := range map[string]bool{"Filtered": false, "Unfiltered": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				if ignores {
					server.IgnoreShardSelector()
				}
				p := newDirectClient(t, server)
				var names []string
				for n := range 40 {
					names = append(names, fmt.Sprint("c-", n))
				}
				p.createMany("ConfigMap", "c", 40)
				in := objectsByRange(p, names)
				if slices.Min(in[:]) == 0 {
					t.Fatalf("a range is empty: %v", in)
				}
				first, second := newReplica(t, server, 0, 1, 2), newReplica(t, server, 3)
				time.Sleep(time.Minute)
				first.requireCalls("at first", map[string]int{"create": in[0] + in[1] + in[2]})
				second.requireCalls("at first", map[string]int{"create": in[3]})
				if first.daemons() != 40-in[3] || second.daemons() != in[3] {
					t.Errorf("%d and %d daemons are running, want %d and %d", first.daemons(), second.daemons(),
						40-in[3], in[3])
				}
				first.requireReady("at first")
				second.requireReady("at first")

				first.leave(2)
				second.add(2)
				for _, name := range names {
					p.merge("ConfigMap", name, `{"data":{"k":"v"}}`)
				}
				time.Sleep(time.Minute)
				second.requireReady("after a move")
				first.requireCalls("after a move", map[string]int{"update": in[0] + in[1]})
				second.requireCalls("after a move", map[string]int{"update": in[2] + in[3], "resume": in[2]})
				if first.daemons() != in[0]+in[1] || second.daemons() != in[2]+in[3] {
					t.Errorf("after a move, %d and %d daemons are running, want %d and %d", first.daemons(),
						second.daemons(), in[0]+in[1], in[2]+in[3])
				}
				if first.all.Objects() != 40 || second.all.Objects() != 40 {
					t.Errorf("the indices of all objects have %d and %d, want 40", first.all.Objects(),
						second.all.Objects())
				}
				if first.own.Objects() != in[0]+in[1] || second.own.Objects() != in[2]+in[3] {
					t.Errorf("the indices by range have %d and %d objects, want %d and %d", first.own.Objects(),
						second.own.Objects(), in[0]+in[1], in[2]+in[3])
				}

				second.leave(2)
				first.add(2)
				time.Sleep(time.Minute)
				first.requireCalls("after the way back", map[string]int{"resume": in[2]})
				second.requireCalls("after the way back", nil)
				first.gate.RangeGate(0).Set(true)
				time.Sleep(time.Hour)
				first.requireReady("while the gate of a range is closed")
			})
		})
	}
}

// TestDeletionOfSharedObject shows that the end of an object is reported in all replicas that watch it for indices, and
// in the one that handles it only after its handlers.
func TestDeletionOfSharedObject(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.createMany("ConfigMap", "c", 1)
		uid := p.get("ConfigMap", "c-0").GetUID()
		index := sharding.IndexOf(uid, rangeCount)
		handling, watching := newReplica(t, server, index), newReplica(t, server, (index+1)%rangeCount)
		time.Sleep(time.Minute)
		p.remove("ConfigMap", "c-0")
		time.Sleep(2 * time.Minute)
		if got, want := handling.deletions(), []string{"c-0", string(uid)}; !slices.Equal(got, want) {
			t.Errorf("in the replica that handles the object, the order is %q, want %q", got, want)
		}
		if got, want := watching.deletions(), []string{string(uid)}; !slices.Equal(got, want) {
			t.Errorf("in another replica, the steps are %q, want %q", got, want)
		}
	})
}

// TestFenceOfRange shows that a handler of a lost range cannot write, also with a context of its own, and that the
// other ranges go on.
func TestFenceOfRange(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		gate, held := &reconcilers.Gate{}, namespaces.NewLiveSet(0, 1, 2, 3)
		m := managerOn(t, server, logr.Discard())
		fence := reconcilers.NewFence(m)
		fenced := fence.WrapClient(p)
		type result struct{ own, foreign, cause error }
		results := map[string]result{} // by name
		var mu sync.Mutex
		call := func(ctx context.Context, c *handlers.Invocation) error {
			<-ctx.Done()
			target := p.object("ConfigMap", nameOf(c))
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"late":"yes"}}`))
			mu.Lock()
			defer mu.Unlock()
			results[nameOf(c)] = result{
				cause:   context.Cause(ctx),
				own:     fenced.Patch(context.WithoutCancel(ctx), target, patch),
				foreign: fenced.Patch(t.Context(), target, patch),
			}
			return ctx.Err()
		}
		p.createMany("ConfigMap", "c", 12)
		stop := operateIn(t, m, reconcilers.Options{
			Gate: gate, Ranges: &sharding.OwnRanges{Count: rangeCount, Held: held}, Fence: fence,
		}, registrationFor(t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create, Call: call}))
		defer stop()
		time.Sleep(5 * time.Second)
		gate.RangeGate(1).AllowWritesUntil(time.Now())
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(results) == 0 {
			t.Fatal("no handler of the lost range has ended")
		}
		for name, got := range results {
			uid := p.get("ConfigMap", name).GetUID()
			if sharding.IndexOf(uid, rangeCount) != 1 {
				t.Errorf("a handler of range %d ended, although range 1 was lost", sharding.IndexOf(uid, rangeCount))
			}
			if !errors.Is(got.cause, execution.ErrPaused) || got.own == nil || got.foreign == nil {
				t.Errorf("a handler of a lost range ended with %v; its write: %v; with a context of its own: %v; want "+
					"ErrPaused and refusals", got.cause, got.own, got.foreign)
			}
		}
	})
}
