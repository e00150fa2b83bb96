package reconcilers

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestNothingBeginsInALaterOpening shows that an opening of the gate permits nothing after the gate was closed, even if
// the gate is open again.
func TestNothingBeginsInALaterOpening(t *testing.T) {
	tests := map[string]struct {
		reason  string
		between func(g *Gate)
		goesOn  bool
	}{
		"Nothing":     {"an opening stays valid while the gate is open", func(*Gate) {}, true},
		"OpenAlready": {"opening an open gate keeps the opening valid", func(g *Gate) { g.Set(false) }, true},
		"Renewed": {"renewing the permission keeps the opening valid", func(g *Gate) {
			g.AllowWritesUntil(time.Now().Add(time.Hour))
		}, true},
		"Paused": {"closing the gate ends the opening", func(g *Gate) { g.Set(true); g.Set(false) }, false},
		"Lapsed": {"the end of the permission ends the opening", func(g *Gate) {
			time.Sleep(time.Hour) // no other goroutine runs in the meantime
			g.AllowWritesUntil(time.Now().Add(time.Hour))
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &Gate{}
				g.AllowWritesUntil(time.Now().Add(time.Minute))
				before, _, _ := g.currentOpening()
				tc.between(g)
				entered := before.Enter()
				if entered != tc.goesOn || before.Open() != tc.goesOn {
					t.Errorf("%s: entered %t, open %t", tc.reason, entered, before.Open())
				}
				if entered {
					before.Leave()
				}
				if now, open, _ := g.currentOpening(); !open || !now.Open() || !now.Enter() || g.Busy() != 1 {
					t.Errorf("%s: the present opening must permit attempts", tc.reason)
				}
				g.AllowWritesUntil(time.Time{})
			})
		})
	}
}

// TestNothingBeginsInAPausedNamespace shows that an attempt begins only if the gates of the operator and of the
// namespace are open, and that a refused attempt is counted by none of them.
func TestNothingBeginsInAPausedNamespace(t *testing.T) {
	operator := &Gate{}
	namespace := operator.NamespaceGate("ns")
	outer, _, _ := operator.currentOpening()
	inner, _, _ := namespace.currentOpening()
	inner.outer = &outer
	for name, tc := range map[string]struct {
		reason string
		closed *Gate
	}{
		"Namespace": {"a closed gate of the namespace refuses the attempt", namespace},
		"Operator":  {"a closed gate of the operator refuses the attempt", operator},
	} {
		tc.closed.Set(true)
		if inner.Open() || inner.Enter() || operator.Busy() != 0 || namespace.Busy() != 0 {
			t.Errorf("%s: %s: %d and %d attempts are counted", name, tc.reason, operator.Busy(), namespace.Busy())
		}
		tc.closed.Set(false)
		outer, _, _ = operator.currentOpening()
		inner, _, _ = namespace.currentOpening()
		if inner.outer = &outer; !inner.Enter() || operator.Busy() != 1 || namespace.Busy() != 1 {
			t.Errorf("%s: with open gates, both must count the attempt", name)
		}
		inner.Leave()
	}
}
