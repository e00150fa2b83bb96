package kopf_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// sharedWork records which replica handles which object, and fails if two handle one object at once.
type sharedWork struct {
	t *testing.T

	mu      sync.Mutex
	current map[string]string         // replica by object, while a handler is running
	calls   map[string]int            // by object
	objects map[string]map[string]int // calls by replica and object
}

func newSharedWork(t *testing.T) *sharedWork {
	calls := map[string]int{}
	return &sharedWork{t: t, current: map[string]string{}, calls: calls, objects: map[string]map[string]int{}}
}

// handle is the handler of a replica.
func (w *sharedWork) handle(replica string) kopf.ChangeFunc[*corev1.ConfigMap] {
	return func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		return w.run(ctx, replica, c.Object.Name)
	}
}

// run records a call, which takes some time.
func (w *sharedWork) run(ctx context.Context, replica, name string) error {
	w.begin(replica, name)
	defer w.finish(name)
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// begin records the beginning of a call.
func (w *sharedWork) begin(replica, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.current[name]; other != "" {
		w.t.Errorf("%s handles %s while %s does", replica, name, other)
	}
	w.current[name] = replica
	w.calls[name]++
	if w.objects[replica] == nil {
		w.objects[replica] = map[string]int{}
	}
	w.objects[replica][name]++
}

// finish records the end of a call.
func (w *sharedWork) finish(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.current, name)
}

// take returns the number of objects that each replica has handled since the last take, and the objects with another
// number of calls than one.
func (w *sharedWork) take(all []string) (byReplica map[string]int, wrong []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byReplica = map[string]int{}
	for replica, objects := range w.objects {
		byReplica[replica] = len(objects)
	}
	for _, name := range all {
		if w.calls[name] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d", name, w.calls[name]))
		}
	}
	clear(w.calls)
	clear(w.objects)
	return byReplica, wrong
}

// startReplica starts a replica of the operator.
func startReplica(t *testing.T, server *memapi.Server, w *sharedWork, name string, n int) *facadetest.Runner {
	t.Helper()
	op := kopf.New("shared.example.org", kopf.Settings{Sharding: kopf.ShardingSettings{Shards: n}})
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.OnCreate("create", w.handle(name))
	maps.OnUpdate("update", w.handle(name))
	return facadetest.Start(t, op, facadetest.Against(memapi.Config(server.Connect())))
}

// TestIndexByRange shows that an index has all objects, and one with ByRange those that the replica handles.
func TestIndexByRange(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		c := clientOf(t, server)
		for n := range 30 {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("c-", n)}}
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		var all, own []*kopf.Index[string, string]
		for range 2 {
			op := kopf.New("indexed.example.org", kopf.Settings{Sharding: kopf.ShardingSettings{Shards: 4}})
			objects := kopf.For(op, &corev1.ConfigMap{})
			byName := func(_ context.Context, object *corev1.ConfigMap) (map[string]string, error) {
				return map[string]string{object.Name: object.Name}, nil
			}
			all = append(all, kopf.NewIndex(objects, "all", byName))
			own = append(own, kopf.NewIndex(objects, "own", byName, kopf.ByRange()))
			objects.OnCreate("create", func(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return nil })
			facadetest.Start(t, op, facadetest.Against(memapi.Config(server.Connect())))
		}
		time.Sleep(time.Minute)
		if all[0].Len() != 30 || all[1].Len() != 30 {
			t.Errorf("the indices of all objects have %d and %d keys, want 30", all[0].Len(), all[1].Len())
		}
		if own[0].Len()+own[1].Len() != 30 || own[0].Len() == 0 || own[1].Len() == 0 {
			t.Errorf("the indices with ByRange have %d and %d keys, want a part of the 30 objects each", own[0].Len(),
				own[1].Len())
		}
	})
}

// TestMoveOfRunningHandlers shows that a handler of a range that moves has time to return after its context has ended,
// before another replica calls a handler for the object.
func TestMoveOfRunningHandlers(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		c := clientOf(t, server)
		w := newSharedWork(t)
		release := make(chan struct{})
		defer close(release)
		cancelled := 0
		start := func(replica string, waits bool) {
			op := kopf.New("moves.example.org", kopf.Settings{Sharding: kopf.ShardingSettings{Shards: 2}})
			kopf.For(op, &corev1.ConfigMap{}).OnCreate("create", func(
				ctx context.Context, c *kopf.Change[*corev1.ConfigMap],
			) error {
				w.begin(replica, c.Object.Name)
				defer w.finish(c.Object.Name)
				if !waits {
					return nil
				}
				select {
				case <-ctx.Done():
					time.Sleep(3 * time.Second)
					w.mu.Lock()
					defer w.mu.Unlock()
					cancelled++
				case <-release:
				}
				return ctx.Err()
			})
			facadetest.Start(t, op, facadetest.Against(memapi.Config(server.Connect())))
		}
		start("first", true)
		time.Sleep(time.Minute)
		for n := range 20 {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("c-", n)}}
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		start("second", false)
		time.Sleep(time.Minute)
		shares, _ := w.take(nil)
		if moved := shares["second"]; moved == 0 || moved == 20 || moved != cancelled {
			t.Errorf("%d handlers were cancelled; the second one called them for %d of 20", cancelled, moved)
		}
	})
}

// TestOutageOfSharedObjects shows that the outcomes of handlers which could not be saved in an outage of the API server
// are kept, although the ranges were closed, because no other replica has taken them.
func TestOutageOfSharedObjects(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		c := clientOf(t, server)
		w := newSharedWork(t)
		var isDown atomic.Bool
		connection := server.Connect()
		connection.Before = func(context.Context, memapi.Request) error {
			if isDown.Load() {
				return errors.New("the API server is down")
			}
			return nil
		}
		op := kopf.New("shared.example.org", kopf.Settings{Sharding: kopf.ShardingSettings{Shards: 4}})
		kopf.For(op, &corev1.ConfigMap{}).OnCreate("create", func(
			ctx context.Context, c *kopf.Change[*corev1.ConfigMap],
		) error {
			isDown.Store(true)
			return w.run(ctx, "one", c.Object.Name)
		})
		facadetest.Start(t, op, facadetest.Against(memapi.Config(connection)))
		time.Sleep(time.Minute)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if !isDown.Load() {
			t.Fatal("the handler was not called")
		}
		isDown.Store(false)
		time.Sleep(time.Minute)
		if _, wrong := w.take([]string{"c"}); len(wrong) > 0 {
			t.Errorf("calls after an outage of a minute: %q, want one", wrong)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil ||
			object.Annotations["shared.example.org/last-handled-configuration"] == "" {
			t.Errorf("the outcome was not saved: %v, annotations %v", err, object.Annotations)
		}
	})
}

// TestSharding shows that replicas share the objects fairly, that each object is handled once after joins, ends and
// kills, and that a changed number of ranges waits until all replicas with the former one have ended.
func TestSharding(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		c := clientOf(t, server)
		var names []string
		for n := range 60 {
			names = append(names, fmt.Sprint("c-", n))
		}
		edits := 0
		edit := func() {
			edits++
			for _, name := range names {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"edit":"%d"}}`, edits))
				if err := c.Patch(t.Context(), object, patch); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, name := range names {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		w := newSharedWork(t)
		requireShares := func(when string, replicas ...string) {
			t.Helper()
			shares, wrong := w.take(names)
			if len(wrong) > 0 {
				t.Errorf("%s: objects that were not handled once: %q", when, wrong)
			}
			if got := slices.Sorted(maps.Keys(shares)); !slices.Equal(got, replicas) {
				t.Errorf("%s: objects by replica: %v, want some for each of %q", when, shares, replicas)
			}
		}
		first := startReplica(t, server, w, "first", 8)
		time.Sleep(time.Minute)
		requireShares("one replica", "first")

		second := startReplica(t, server, w, "second", 8)
		third := startReplica(t, server, w, "third", 8)
		edit()
		time.Sleep(time.Minute)
		_, wrong := w.take(names)
		if len(wrong) > 0 {
			t.Errorf("edits while replicas join: objects that were not handled once: %q", wrong)
		}
		edit()
		time.Sleep(time.Minute)
		requireShares("three replicas", "first", "second", "third")

		if err := second.Stop(); err != nil {
			t.Error(err)
		}
		edit()
		time.Sleep(10 * time.Second)
		requireShares("after the end of one", "first", "third")

		third.Kill()
		edit()
		time.Sleep(time.Minute)
		requireShares("after a kill", "first")

		changed := startReplica(t, server, w, "changed", 4)
		time.Sleep(time.Minute)
		edit()
		time.Sleep(time.Minute)
		requireShares("beside a replica with another number of ranges", "first")
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		edit()
		time.Sleep(time.Minute)
		requireShares("after the replicas with the former number", "changed")
		_ = changed
	})
}

// startPeer starts a replica with a peering that handles widgets until the end of the test.
func (s *sharedPeering) startPeer(w *sharedWork, identity string, priority int) {
	op := kopf.New("test.example.org", kopf.Settings{
		Peering:  kopf.PeeringSettings{Name: "shared", Identity: identity, Priority: priority},
		Sharding: kopf.ShardingSettings{Shards: 4},
	})
	widgets := kopf.For(op, &Widget{})
	handle := func(ctx context.Context, c *Change) error { return w.run(ctx, identity, c.Object.Name) }
	widgets.OnCreate("create", handle)
	widgets.OnUpdate("update", handle)
	stop := s.run(op, nil)
	s.t.Cleanup(func() {
		if err := stop(); err != nil {
			s.t.Error(err)
		}
	})
}

// putWidgets creates widgets, or changes their size.
func (s *sharedPeering) putWidgets(names []string, size int64) {
	spec := map[string]any{"size": size}
	for _, name := range names {
		if !s.server.Edit(widgetResource, "ns", name, func(object map[string]any) { object["spec"] = spec }) {
			uid := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
			s.server.Put(widgetResource, map[string]any{
				"metadata": map[string]any{"name": name, "namespace": "ns", "uid": uid}, "spec": spec,
			})
		}
	}
}

// TestPeersOfSharedObjects shows that replicas that share the objects do not pause for each other as peers, and that
// all of them pause for a peer of a higher priority.
func TestPeersOfSharedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newShared(t), newSharedWork(t)
		var names []string
		for n := range 20 {
			names = append(names, fmt.Sprint("more-", n))
		}
		s.putWidgets(names, 1)
		s.startPeer(w, "a", 0)
		s.startPeer(w, "b", 0)
		time.Sleep(time.Minute)
		shares, wrong := w.take(names)
		if len(shares) != 2 || len(wrong) > 0 {
			t.Errorf("objects by replica: %v; not handled once: %q; want some for each replica", shares, wrong)
		}
		s.addPeer(120)
		time.Sleep(10 * time.Second)
		s.putWidgets(names, 2)
		time.Sleep(time.Minute)
		if shares, _ := w.take(names); len(shares) > 0 {
			t.Errorf("handlers were called in the pause: %v", shares)
		}
		time.Sleep(2 * time.Minute)
		if shares, wrong := w.take(names); len(shares) != 2 || len(wrong) > 0 {
			t.Errorf("after the pause, objects by replica: %v; not handled once: %q", shares, wrong)
		}
		s.startPeer(w, "c", 10) // the others pause, so this one must not keep to a share
		time.Sleep(time.Minute)
		s.putWidgets(names, 3)
		time.Sleep(time.Minute)
		if shares, wrong := w.take(names); len(shares) != 1 || shares["c"] != len(names) || len(wrong) > 0 {
			t.Errorf("with a higher priority, c must handle all objects: %v; not handled once: %q", shares, wrong)
		}
	})
}
