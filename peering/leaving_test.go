package peering_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// TestDroppedNamespaceInPause shows that an operator that is paused in all of its namespaces stays paused as a whole
// when one of them is dropped: D-peering-namespace.
func TestDroppedNamespaceInPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, scope := memapi.New(), namespaces.NewLive("a", "b")
		server.Install(namespacedPeeringResource)
		createPeering(server, namespacedPeeringResource, "a", peerStatus(int64(9)))
		createPeering(server, namespacedPeeringResource, "b", peerStatus(int64(9)))
		h, stop := startInNamespaces(t, server.Connect(), scope)
		defer stop()
		time.Sleep(time.Minute)
		h.requireState("with peers in both namespaces", false, map[string]bool{"a": false, "b": false})
		before := h.operator.timesOpened()
		scope.Replace([]string{"b"})
		time.Sleep(2 * time.Minute)
		h.requireState("after a namespace was dropped", false, map[string]bool{"a": true, "b": false})
		if got := h.operator.timesOpened(); got != before {
			t.Errorf("the operator's gate was opened %d times in between", got-before)
		}
	})
}

// requireEnded checks that the gate is closed, and that its permission to write has ended.
func (o *attendingOperator) requireEnded(t *testing.T, when string) {
	t.Helper()
	o.requireState(t, when, false)
	if end := o.permissionEnd(); end.IsZero() || end.After(time.Now()) {
		t.Errorf("%s: want no permission to write, got one until %s", when, end)
	}
}

// TestAttemptsAfterTheEnd shows that the end of the peering does not open the gate while an attempt is running,
// because peers can act then: D-peering-fence. It waits for the attempt at most as long as the record lasts.
func TestAttemptsAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, running := memapi.New(), atomic.Int64{}
		server.Install(clusterPeeringResource)
		createPeering(server, clusterPeeringResource, "", nil)
		o := startAttendance(t, server, peering.Member{Busy: func() int { return int(running.Load()) }})
		time.Sleep(time.Minute)
		o.requireState(t, "without peers", true)
		running.Store(1)
		ended := time.Now()
		if o.stop(); time.Since(ended) > peering.DefaultLifetime+10*time.Second {
			t.Errorf("Run waited %s for the attempt", time.Since(ended))
		}
		time.Sleep(time.Hour)
		o.requireEnded(t, "while the attempt is running")
		running.Store(0)
		time.Sleep(2 * time.Second)
		o.requireState(t, "after the attempt", true)
	})
}

// TestAttemptsInDroppedNamespace shows the same for the gate of a dropped namespace and the operator's gate, which
// depends on it.
func TestAttemptsInDroppedNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, scope := memapi.New(), namespaces.NewLive("a", "b")
		server.Install(namespacedPeeringResource)
		createPeering(server, namespacedPeeringResource, "a", nil)
		createPeering(server, namespacedPeeringResource, "b", peerStatus(int64(9)))
		h, stop := startInNamespaces(t, server.Connect(), scope)
		defer stop()
		time.Sleep(time.Minute)
		h.requireState("with a peer in one namespace", true, map[string]bool{"a": true, "b": false})
		h.gateIn("a").running.Store(1)
		scope.Replace([]string{"b"})
		time.Sleep(10 * time.Minute)
		h.gateIn("a").requireEnded(t, "while the attempt is running")
		h.requireState("after a namespace was dropped", false, map[string]bool{"b": false})
		h.gateIn("a").running.Store(0)
		time.Sleep(2 * time.Second)
		h.requireState("after the attempt", false, map[string]bool{"a": true, "b": false})
	})
}

// timesOpened returns how often the gate was opened.
func (o *attendingOperator) timesOpened() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.openCount
}
