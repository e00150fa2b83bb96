package kopf_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var peerings = memapi.Resource{
	Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering",
	StatusSubresource: true,
}

// sharedPeering is a cluster with one object, which operators with a common peering handle.
type sharedPeering struct {
	t      *testing.T
	server *memapi.Server

	mu      sync.Mutex
	calls   []string // by operators, in order
	running map[string]int
}

func newShared(t *testing.T) *sharedPeering {
	t.Helper()
	s := &sharedPeering{t: t, server: memapi.New(), running: map[string]int{}}
	s.server.Install(widgetResource)
	s.server.Install(peerings)
	s.server.Put(peerings, map[string]any{"metadata": map[string]any{"name": "shared"}})
	s.server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	return s
}

// operator returns an operator that handles each change of the object for some seconds. All such operators share their
// records, because they have the same name.
func (s *sharedPeering) operator(identity string, priority int, wrong ...func(*kopf.Settings)) *kopf.Operator {
	settings := kopf.Settings{Peering: kopf.PeeringSettings{Name: "shared", Identity: identity, Priority: priority}}
	for _, change := range wrong {
		change(&settings)
	}
	op := kopf.New("test.example.org", settings)
	handler := func(_ context.Context, c *Change) error {
		s.begin(identity, fmt.Sprintf("%s %s %d", identity, c.Reason, c.Object.Spec.Size))
		defer s.end(identity)
		time.Sleep(3 * time.Second)
		return nil
	}
	kopf.For(op, &Widget{}).OnCreate("create", handler)
	kopf.For(op, &Widget{}).OnUpdate("update", handler)
	return op
}

// begin records a call, and fails the test if another operator runs a handler.
func (s *sharedPeering) begin(identity, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	s.running[identity]++
	for other, count := range s.running {
		if other != identity && count > 0 {
			s.t.Errorf("%s and %s act at once: %v", identity, other, s.calls)
		}
	}
}

func (s *sharedPeering) end(identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[identity]--
}

func (s *sharedPeering) want(calls ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, want := strings.Join(s.calls, ", "), strings.Join(calls, ", "); got != want {
		s.t.Errorf("want the calls %s; got %s", want, got)
	}
}

// resize changes the object.
func (s *sharedPeering) resize(size int64) {
	s.t.Helper()
	if !s.server.Edit(widgetResource, "ns", "w1", func(object map[string]any) {
		object["spec"] = map[string]any{"size": size}
	}) {
		s.t.Fatal("there is no object")
	}
}

// records returns the records of the peering, by identity.
func (s *sharedPeering) records() map[string]any {
	status, _ := s.server.Object(peerings, "", "shared")["status"].(map[string]any)
	return status
}

// run runs the operator in a manager. With a lock, the manager uses it for leader election.
func (s *sharedPeering) run(op *kopf.Operator, lock resourcelock.Interface) (stop func() error) {
	s.t.Helper()
	if lock == nil {
		return startInManager(s.t, s.server, op)
	}
	return startInManager(s.t, s.server, op, electingBy(lock))
}

// TestPeersHandOver shows that of two operators with a named peering, the one with the higher priority takes over, and
// hands back when it ends. Each change is handled once.
func TestPeersHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		low := s.run(s.operator("low", 1), nil)
		time.Sleep(10 * time.Second)
		s.want("low create 1")
		s.resize(2)
		time.Sleep(time.Second) // while the handler runs
		high := s.run(s.operator("high", 2), nil)
		time.Sleep(20 * time.Second)
		s.resize(3)
		time.Sleep(20 * time.Second)
		s.want("low create 1", "low update 2", "high update 3")
		if err := high(); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		s.resize(4)
		time.Sleep(20 * time.Second)
		s.want("low create 1", "low update 2", "high update 3", "low update 4")
		if err := low(); err != nil {
			t.Error(err)
		}
		if left := s.records(); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
	})
}

// TestPeersUnderLeaderElection shows that under the manager's own leader election, only the leader has a record. The
// peering does not stop the leader, whichever identity is smaller.
func TestPeersUnderLeaderElection(t *testing.T) {
	for _, leader := range []string{"a", "b"} {
		t.Run(leader+" leads", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(t)
				replicas := map[string]func() error{}
				for _, identity := range []string{"a", "b"} {
					var lock resourcelock.Interface = &fakeLock{}
					if identity != leader {
						lock = &foreignLock{} // by another process
					}
					replicas[identity] = s.run(s.operator(identity, 0), lock)
				}
				time.Sleep(time.Minute)
				s.want(leader + " create 1")
				if records := s.records(); len(records) != 1 || records[leader] == nil {
					t.Errorf("the records are %v", records)
				}
				for identity, stop := range replicas {
					if err := stop(); err != nil {
						t.Errorf("%s: %v", identity, err)
					}
				}
			})
		})
	}
}

// TestPeeringLock shows that with the lock of the peering, one of two managers leads: the one with the higher priority
// or the smaller identity, regardless of the order of their starts. When it ends, the other one takes over.
func TestPeeringLock(t *testing.T) {
	for name, first := range map[string]string{"smaller first": "a", "smaller last": "b"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(t)
				second := map[string]string{"a": "b", "b": "a"}[first]
				managers := map[string]func() error{}
				for _, identity := range []string{first, second} {
					op := s.operator(identity, 0)
					managers[identity] = s.run(op, op.PeeringLock())
					time.Sleep(10 * time.Second)
				}
				s.want(first + " create 1")
				time.Sleep(20 * time.Second) // it may take until the RenewDeadline
				s.resize(2)
				time.Sleep(20 * time.Second)
				s.want(first+" create 1", "a update 2")
				if err := managers["a"](); err != nil {
					t.Errorf("the leader: %v", err)
				}
				time.Sleep(20 * time.Second)
				if first == "b" { // it has ended, because it lost the leadership
					if err := managers["b"](); err == nil || !strings.Contains(err.Error(), "leader election lost") {
						t.Errorf("the former leader: %v", err)
					}
					return
				}
				s.resize(3)
				time.Sleep(20 * time.Second)
				s.want("a create 1", "a update 2", "b update 3")
				if err := managers["b"](); err != nil {
					t.Errorf("the follower: %v", err)
				}
			})
		})
	}
}

// TestAutomaticPeering shows that an operator in a project's manager does not have peers unless a peering is named, and
// that a program of its own finds its peering by name: D-peering-alone, D-peering-name.
func TestAutomaticPeering(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		change     func(*kopf.Settings)
		program    bool
		wantActive bool
	}{
		"project": {"in a project's manager, an operator without a named peering acts",
			func(s *kopf.Settings) { s.Peering.Name = "" }, false, true},
		"program": {"a program pauses for a peer in the peering of the operator's name",
			func(s *kopf.Settings) { s.Peering.Name = "" }, true, false},
		"as Kopf": {"as Kopf, a program uses only the peering named default", func(s *kopf.Settings) {
			*s = kopf.AsKopf()
			s.Peering.Identity = "me" // otherwise, the host's name is looked up, in real time
		}, true, true},
		"standalone": {"a standalone program ignores peers", func(s *kopf.Settings) {
			s.Peering.Name, s.Peering.Standalone = "", true
		}, true, true},
		"mandatory": {"an operator with a missing mandatory peering does not act", func(s *kopf.Settings) {
			s.Peering.Name, s.Peering.Mandatory = "other", true
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(t)
				s.server.Put(peerings, map[string]any{
					"metadata": map[string]any{"name": "test.example.org"}, "status": map[string]any{
						"him": map[string]any{"priority": int64(9), "lifetime": int64(3600)},
					},
				})
				op := s.operator("me", 0, c.change)
				var stop func() error
				if !c.program {
					stop = s.run(op, nil)
				} else {
					stop = startAsProgram(t, s.server, op)
				}
				time.Sleep(time.Minute)
				s.mu.Lock()
				if acts := len(s.calls) > 0; acts != c.wantActive {
					t.Errorf("%s: the operator acts: %t", c.reason, acts)
				}
				s.mu.Unlock()
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
