package peering_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// testNamespaceGate is the gate of one namespace.
type testNamespaceGate struct {
	attendingOperator

	running atomic.Int64
}

func (r *testNamespaceGate) Busy() int { return int(r.running.Load()) }

// Idle never reports, so a membership checks again when its record must be renewed.
func (r *testNamespaceGate) Idle() <-chan struct{} { return nil }

// operatorGates is an operator with a gate in each namespace.
type operatorGates struct {
	t        *testing.T
	operator attendingOperator

	mu    sync.Mutex
	gates map[string]*testNamespaceGate
}

func (h *operatorGates) gateFor(namespace string) peering.AttemptGate { return h.gateIn(namespace) }

// gateIn returns the gate of a namespace.
func (h *operatorGates) gateIn(namespace string) *testNamespaceGate {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gates[namespace] == nil {
		h.gates[namespace] = &testNamespaceGate{}
	}
	return h.gates[namespace]
}

// permissionEnd returns when the permission to write ends.
func (o *attendingOperator) permissionEnd() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writableUntil
}

// startInNamespaces starts an operator with attendance in all namespaces of the scope.
func startInNamespaces(
	t *testing.T, server *memapi.Connection, scope peering.Scope,
) (h *operatorGates, stop func()) {
	t.Helper()
	h = &operatorGates{t: t, gates: map[string]*testNamespaceGate{}}
	member := peering.Member{Self: peering.Self{Identity: "me"}, Name: "default"}
	a, err := peering.NewAttendance(memapi.Config(server), &http.Client{Transport: server}, member, &h.operator)
	if err != nil {
		t.Fatal(err)
	}
	a.JoinNamespaces(scope)
	a.PauseNamespaces(h.gateFor)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	return h, func() { cancel(); <-done }
}

// requireState checks whether the operator acts at all, and in which namespaces.
func (h *operatorGates) requireState(when string, acts bool, in map[string]bool) {
	h.t.Helper()
	h.operator.requireState(h.t, when, acts)
	for namespace, acts := range in {
		h.gateIn(namespace).requireState(h.t, when+": "+namespace, acts)
	}
}

// TestParts shows that a peer in one namespace pauses the operator there. Peers in all namespaces pause it as a
// whole, because cluster-scoped objects belong to the peers, too: D-peering-namespace.
func TestParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, scope := memapi.New(), namespaces.NewLive("a", "b")
		server.Install(namespacedPeeringResource)
		createPeering(server, namespacedPeeringResource, "a", peerStatus(int64(9)))
		createPeering(server, namespacedPeeringResource, "b", nil)
		h, stop := startInNamespaces(t, server.Connect(), scope)
		time.Sleep(time.Minute)
		h.requireState("with a peer in one namespace", true, map[string]bool{"a": false, "b": true})
		createPeering(server, namespacedPeeringResource, "b", peerStatus(int64(9)))
		time.Sleep(time.Minute)
		h.requireState("with a peer in both namespaces", false, map[string]bool{"a": false, "b": false})
		createPeering(server, namespacedPeeringResource, "a", nil)
		time.Sleep(time.Minute)
		h.requireState("after a peer has left one namespace", true, map[string]bool{"a": true, "b": false})
		scope.Replace([]string{"b"})
		time.Sleep(2 * time.Minute)
		h.requireState("after a namespace was dropped", false, map[string]bool{"b": false})
		scope.Replace([]string{"b", "c"})
		time.Sleep(2 * time.Minute)
		h.requireState("with a namespace without a peering object", true, map[string]bool{"b": false, "c": true})
		stop()
	})
}

// TestSilentPart shows that a peering object that never answers, such as one that a tenant has filled, closes the
// gate of its namespace only.
func TestSilentPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Install(namespacedPeeringResource)
		createPeering(server, namespacedPeeringResource, "a", nil)
		createPeering(server, namespacedPeeringResource, "b", nil)
		connection := server.Connect()
		connection.Before = func(_ context.Context, r memapi.Request) error {
			if r.Verb == "patch" && r.Namespace == "a" {
				return memapi.NewRefusal(http.StatusInternalServerError)
			}
			return nil
		}
		h := &operatorGates{t: t, gates: map[string]*testNamespaceGate{}}
		member := peering.Member{Self: peering.Self{Identity: "me"}, Name: "default"}
		client := &http.Client{Transport: connection}
		a, err := peering.NewAttendance(memapi.Config(connection), client, member, &h.operator)
		if err != nil {
			t.Fatal(err)
		}
		a.JoinNamespaces(fixedScope{"a", "b"})
		a.PauseNamespaces(h.gateFor)
		admitted := make(chan []string, 100)
		a.OnAdmittedNamespaces(func(names []string) { admitted <- names })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); a.Run(ctx) }()
		time.Sleep(time.Hour)
		h.requireState("with one object that does not answer", true, map[string]bool{"a": false, "b": true})
		cancel()
		<-done
		close(admitted)
		var last []string
		for names := range admitted {
			last = names
		}
		if len(last) != 1 || last[0] != "b" {
			t.Errorf("only the namespace that has answered must be admitted, got %v", last)
		}
	})
}

// TestPermissionOfParts shows that without an answer, the permission to write ends in each namespace, and as a whole
// with the last of them.
func TestPermissionOfParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Install(namespacedPeeringResource)
		createPeering(server, namespacedPeeringResource, "a", nil)
		createPeering(server, namespacedPeeringResource, "b", nil)
		connection, refused := server.Connect(), atomic.Value{}
		refused.Store("")
		connection.Before = func(_ context.Context, r memapi.Request) error {
			if who := refused.Load(); r.Verb == "patch" && (who == "all" || r.Namespace == who) {
				return memapi.NewRefusal(http.StatusInternalServerError)
			}
			return nil
		}
		h, stop := startInNamespaces(t, connection, fixedScope{"a", "b"})
		defer stop()
		time.Sleep(time.Minute)
		refused.Store("a")
		time.Sleep(2 * time.Minute)
		now := time.Now()
		if a, b, whole := h.gateIn("a").permissionEnd(), h.gateIn("b").permissionEnd(),
			h.operator.permissionEnd(); !a.Before(now) ||
			!b.After(now) || !whole.After(now) {
			t.Errorf("writes are allowed for %s, %s, and %s as a whole", a.Sub(now), b.Sub(now), whole.Sub(now))
		}
		h.requireState("after one permission has ended", true, map[string]bool{"a": false, "b": true})
		refused.Store("all")
		time.Sleep(2 * time.Minute)
		if left := time.Until(h.operator.permissionEnd()); left >= 0 {
			t.Errorf("as a whole, writes are allowed for %s", left)
		}
		h.requireState("after all permissions have ended", false, map[string]bool{"a": false, "b": false})
	})
}
