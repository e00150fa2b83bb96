package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var leases = memapi.Resource{
	Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true,
}

// electing is one process of an operator, as kopf.Main runs it.
type electing struct {
	name       string
	connection *memapi.Connection
	down       atomic.Bool // its requests fail
	hangs      atomic.Bool // its handlers hang
	stop       func() (code int, stderr string)
}

// electingCluster is a cluster with processes that elect one of them, and the calls of their handlers.
type electingCluster struct {
	t      *testing.T
	server *memapi.Server
	mu     sync.Mutex
	calls  []string
}

func newElecting(t *testing.T) *electingCluster {
	t.Helper()
	c := &electingCluster{t: t, server: memapi.New()}
	c.server.Install(widgetResource)
	c.server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	return c
}

// start starts a process. Its handlers write its name into the status.
func (c *electingCluster) start(name string, args ...string) *electing {
	c.t.Helper()
	p := &electing{name: name, connection: c.server.Connect()}
	p.connection.Before = func(context.Context, memapi.Request) error {
		if p.down.Load() {
			return errors.New("the API server does not answer")
		}
		return nil
	}
	op := kopf.New("test.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{addWidgets}, Peering: kopf.PeeringSettings{Identity: name},
	})
	op.OnLogin("login", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
		return &kopf.ConnectionInfo{Server: "http://memapi", Config: memapi.Config(p.connection)}, nil
	})
	handle := func(ctx context.Context, o *Change) error {
		c.mu.Lock()
		c.calls = append(c.calls, fmt.Sprintf("%s %s %d", name, o.Reason, o.Object.Spec.Size))
		c.mu.Unlock()
		for p.hangs.Load() && ctx.Err() == nil {
			time.Sleep(time.Second)
		}
		// The connection can break between the call and the write of its result.
		time.Sleep(2 * time.Second)
		o.Patch(func(w *Widget) { w.Status.Host = name })
		return nil
	}
	kopf.For(op, &Widget{}).OnCreate("create", handle)
	kopf.For(op, &Widget{}).OnUpdate("update", handle)
	p.stop = startCommand(c.t, op, append([]string{"--leader-elect"}, args...)...)
	return p
}

// resize changes the object.
func (c *electingCluster) resize(size int64) {
	c.t.Helper()
	if !c.server.Edit(widgetResource, "ns", "w1", func(o map[string]any) { o["spec"] = map[string]any{"size": size} }) {
		c.t.Fatal("there is no object")
	}
}

// want requires the calls so far.
func (c *electingCluster) want(calls ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.calls, calls) {
		c.t.Errorf("want the calls %q, got %q", calls, c.calls)
	}
}

// lease returns the only Lease.
func (c *electingCluster) lease() (name, holder string) {
	for _, one := range c.server.ObjectsOf(leases) {
		name, _ = one["metadata"].(map[string]any)["name"].(string)
		holder, _ = one["spec"].(map[string]any)["holderIdentity"].(string)
	}
	return name, holder
}

// end stops a process, which must exit with code 0, and returns its log.
func (c *electingCluster) end(p *electing) string {
	c.t.Helper()
	code, stderr := p.stop()
	if code != 0 {
		c.t.Errorf("%s exits with code %d\n%s", p.name, code, stderr)
	}
	return stderr
}

// TestElection shows that of two processes with --leader-elect, one handles each change. When it stops, the Lease is
// released, and the other one continues. The process on standby logs the holder.
func TestElection(t *testing.T) {
	withoutCluster(t)
	t.Setenv("POD_ID", "pod")
	synctest.Test(t, func(t *testing.T) {
		c := newElecting(t)
		a := c.start("a")
		time.Sleep(time.Second)
		b := c.start("b")
		time.Sleep(10 * time.Second)
		c.want() // a new Lease can be a removed one, whose holder may act for a lease duration
		time.Sleep(20 * time.Second)
		c.want("a create 1")
		if name, holder := c.lease(); name != "test.example.org-684888c0" || !strings.HasPrefix(holder, "pod_") {
			t.Errorf("the Lease %q is held by %q", name, holder)
		}
		c.resize(2)
		time.Sleep(time.Second) // the handler runs
		c.end(a)
		if _, holder := c.lease(); holder != "" {
			t.Errorf("a process that stops must release the Lease: %q holds it", holder)
		}
		time.Sleep(10 * time.Second)
		c.resize(3)
		time.Sleep(10 * time.Second)
		c.want("a create 1", "a update 2", "b update 3")
		if log := c.end(b); !strings.Contains(log, "Another process holds the Lease") {
			t.Errorf("the process on standby must log that:\n%s", log)
		}
	})
}

// TestFirstUpdate shows that a process of a version without an election overlaps with one that elects, as it does with
// one of its own version. With the strategy Recreate, the old process ends first, and each change is handled once.
func TestFirstUpdate(t *testing.T) {
	for name, recreates := range map[string]bool{"RollingUpdate": false, "Recreate": true} {
		t.Run(name, func(t *testing.T) {
			withoutCluster(t)
			synctest.Test(t, func(t *testing.T) {
				c := newElecting(t)
				former := c.start("old", "--leader-elect=false")
				time.Sleep(10 * time.Second)
				if recreates {
					c.end(former)
				}
				next := c.start("new")
				time.Sleep(20 * time.Second)
				c.resize(2)
				time.Sleep(10 * time.Second)
				want := []string{"old create 1", "new update 2"}
				if !recreates {
					want = []string{"new update 2", "old create 1", "old update 2"}
					c.end(former)
				}
				c.mu.Lock()
				slices.Sort(c.calls)
				c.mu.Unlock()
				slices.Sort(want)
				c.want(want...)
				c.end(next)
			})
		})
	}
}

// TestElectionAndOutages shows what becomes of a result that could not be written because the connection broke. Without
// another holder of the Lease, it is written afterwards, and the handler is not called again. If another process had
// the Lease, it is dropped: that process may have called the handler, even if it has not written anything.
func TestElectionAndOutages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		between bool
		want    []string
	}{
		"Nobody":   {"the result is written, and the handler is not called again", false, []string{"a create 1"}},
		"Somebody": {"the result is dropped", true, []string{"a create 1", "b create 1", "a create 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			withoutCluster(t)
			synctest.Test(t, func(t *testing.T) {
				c := newElecting(t)
				a := c.start("a")
				for called := 0; called == 0; time.Sleep(100 * time.Millisecond) {
					c.mu.Lock()
					called = len(c.calls)
					c.mu.Unlock()
				}
				a.down.Store(true)
				b := c.start("b")
				b.hangs.Store(true)
				b.down.Store(!tc.between)
				time.Sleep(time.Minute)
				if tc.between {
					c.want("a create 1", "b create 1")
				}
				b.connection.Cut() // it dies before it writes anything
				b.hangs.Store(false)
				_, _ = b.stop()
				a.down.Store(false)
				time.Sleep(time.Minute)
				c.want(tc.want...)
				status := c.server.Object(widgetResource, "ns", "w1")["status"].(map[string]any)
				if status["host"] != "a" {
					t.Errorf("%s: the status is %v", tc.reason, status)
				}
				c.end(a)
			})
		})
	}
}

// TestElectionAndPeers shows that a peering object decides instead of a Lease: from the start, so that no Lease is
// written, or from when it appears.
func TestElectionAndPeers(t *testing.T) {
	for name, late := range map[string]bool{"FromTheStart": false, "Later": true} {
		t.Run(name, func(t *testing.T) {
			withoutCluster(t)
			synctest.Test(t, func(t *testing.T) {
				c := newElecting(t)
				object := map[string]any{"metadata": map[string]any{"name": "test.example.org"}}
				c.server.Install(peerings)
				if !late {
					c.server.Put(peerings, object)
				}
				low := c.start("low", "--priority=1")
				time.Sleep(40 * time.Second)
				high := c.start("high", "--priority=2")
				time.Sleep(30 * time.Second)
				if late {
					c.want("low create 1")
					c.server.Put(peerings, object)
					time.Sleep(time.Minute)
				} else if lease, _ := c.lease(); lease != "" {
					t.Errorf("with a peering object, the Lease %q is written", lease)
				}
				c.resize(2)
				time.Sleep(5 * time.Minute)
				c.resize(3)
				time.Sleep(time.Minute)
				c.want("low create 1", "high update 2", "high update 3")
				if _, holder := c.lease(); holder != "" {
					t.Errorf("with a peering object, the Lease is held by %q", holder)
				}
				c.end(high)
				log := c.end(low)
				if strings.Contains(log, "acts without regard to others") ||
					strings.Contains(log, "no peering object; a Lease decides which process acts") != late {
					t.Errorf("without a peering object, the log says that the Lease decides:\n%s", log)
				}
			})
		})
	}
}
