package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// callsOfReplicas counts calls of handlers by their objects and children.
type callsOfReplicas struct {
	mu    sync.Mutex
	calls map[string]int
	by    map[string][]string // the objects and children by replica
}

func (c *callsOfReplicas) add(replica, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[what]++
	c.by[replica] = append(c.by[replica], what)
}

// take returns the objects and children without exactly one call, and the number of replicas with calls.
func (c *callsOfReplicas) take(want []string) (wrong []string, replicas int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range want {
		if n := c.calls[what]; n != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d", what, n))
		}
	}
	for what := range c.calls {
		if !slices.Contains(want, what) {
			wrong = append(wrong, what)
		}
	}
	replicas = len(c.by)
	clear(c.calls)
	clear(c.by)
	return wrong, replicas
}

// TestShardedScopes shows that replicas share the objects of several namespaces and of a cluster-scoped kind, and that
// a handler of children is called once for a child, by the replica that has its parent, although a child and its parent
// are seldom in the same range. A handler waits for its child, and children are restored once. All replicas answer
// reviews.
func TestShardedScopes(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		c := clientOf(t, server)
		seen := &callsOfReplicas{calls: map[string]int{}, by: map[string][]string{}}
		reviews := &callsOfReplicas{calls: map[string]int{}, by: map[string][]string{}}
		start := func(name string) *facadetest.Runner {
			op := kopf.New("scopes.example.org", kopf.Settings{
				Namespaces: []string{"a", "b"}, Sharding: kopf.ShardingSettings{Shards: 5},
			})
			maps := kopf.For(op, &corev1.ConfigMap{})
			maps.Owns(&corev1.Secret{})
			maps.OnCreate("create", func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
				child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}}
				if err := c.Ensure(ctx, child); err != nil {
					return err
				}
				isReady := func(s *corev1.Secret) bool { return s.Namespace == "b" || s.Labels["edited"] == "yes" }
				if err := kopf.WaitFor(c, child, isReady, time.Hour); err != nil {
					return err
				}
				seen.add(name, c.Object.Namespace+"/"+c.Object.Name)
				return nil
			})
			maps.Validate("check", func(_ context.Context, a *kopf.Admission[*corev1.ConfigMap]) error {
				reviews.add(name, a.Object.Name)
				return nil
			})
			kopf.OnChild(maps, "child", func(
				_ context.Context, e *kopf.ChildEvent[*corev1.ConfigMap, *corev1.Secret],
			) error {
				if e.Type == kopf.WatchEventModified {
					seen.add(name, "child "+e.Child.Namespace+"/"+e.Child.Name)
				}
				return nil
			})
			kopf.For(op, &corev1.Node{}).OnCreate("node", func(_ context.Context, c *kopf.Change[*corev1.Node]) error {
				seen.add(name, c.Object.Name)
				return nil
			})
			return facadetest.Start(t, op, facadetest.Against(memapi.Config(server.Connect())))
		}
		for _, name := range []string{"first", "second", "third"} {
			start(name)
		}
		time.Sleep(time.Minute)
		var created, edited []string
		for n := range 20 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n-", n)}}
			if err := c.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			created = append(created, node.Name)
			for _, namespace := range []string{"a", "b", "other"} {
				name := fmt.Sprint("c-", n)
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
				if err := c.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				switch namespace {
				case "a":
					edited = append(edited, "a/"+name, "child a/"+name)
				case "b":
					created = append(created, "b/"+name)
				}
			}
		}
		time.Sleep(time.Minute)
		if wrong, replicas := seen.take(created); len(wrong) > 0 || replicas < 2 {
			t.Errorf("after creations, %d replicas were called; not called once: %q", replicas, wrong)
		}
		if _, replicas := reviews.take(nil); replicas != 3 {
			t.Errorf("%d of 3 replicas have answered reviews, want all", replicas)
		}
		edit := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"edited":"yes"}}}`))
		for n := range 20 {
			child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("c-", n)}}
			if err := c.Patch(t.Context(), child, edit); err != nil {
				t.Error(err)
			}
			gone := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: fmt.Sprint("c-", n)}}
			if err := c.Delete(t.Context(), gone); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		if wrong, replicas := seen.take(edited); len(wrong) > 0 || replicas < 2 {
			t.Errorf("after edits of children, %d replicas were called; not called once: %q", replicas, wrong)
		}
		var restored corev1.SecretList
		if err := c.List(t.Context(), &restored, client.InNamespace("b")); err != nil || len(restored.Items) != 20 {
			t.Errorf("of 20 deleted children, %d were restored, error %v", len(restored.Items), err)
		}
	})
}

// TestShardingWithStartupHandlers shows that replicas in managers of the project share the objects after their startup
// handlers, too: each object is handled once.
func TestShardingWithStartupHandlers(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		seen := &callsOfReplicas{calls: map[string]int{}, by: map[string][]string{}}
		for _, replica := range []string{"first", "second"} {
			op := kopf.New("begin.example.org", kopf.Settings{
				AddToScheme: runtime.SchemeBuilder{corev1.AddToScheme}, Sharding: kopf.ShardingSettings{Shards: 4},
			})
			op.OnStartup("begin", func(context.Context, *kopf.Activity) error { return nil })
			kopf.For(op, &corev1.ConfigMap{}).OnEvent("event",
				func(_ context.Context, e *kopf.WatchEvent[*corev1.ConfigMap]) error {
					seen.add(replica, e.Object.Name)
					return nil
				})
			stop := startInManager(t, server.Connect(), op)
			defer func() {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(time.Minute) // the replicas share the ranges
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprintf("map-%d", i))
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: want[i], Namespace: "default"}}
			if err := clientOf(t, server).Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if wrong, replicas := seen.take(want); len(wrong) > 0 || replicas != 2 {
			t.Errorf("two replicas must handle each object once: %d replicas, wrong numbers %v", replicas, wrong)
		}
	})
}
