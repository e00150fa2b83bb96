package reconcilers

import (
	"testing"
	"testing/synctest"
	"time"
)

// Whatever serves in one opening of the gate may begin nothing in the next one, even if it has not heard of the end.
func TestNothingBeginsInALaterOpening(t *testing.T) {
	tests := map[string]struct {
		reason  string
		between func(g *Gate)
		goesOn  bool
	}{
		"Nothing":     {"nobody has closed it", func(*Gate) {}, true},
		"OpenAlready": {"it was not closed", func(g *Gate) { g.Set(false) }, true},
		"Renewed": {"the permission goes on", func(g *Gate) {
			g.AllowWritesUntil(time.Now().Add(time.Hour))
		}, true},
		"Paused": {"others may have acted", func(g *Gate) { g.Set(true); g.Set(false) }, false},
		"Lapsed": {"others may have acted", func(g *Gate) {
			time.Sleep(time.Hour) // nobody has run meanwhile
			g.AllowWritesUntil(time.Now().Add(time.Hour))
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &Gate{}
				g.AllowWritesUntil(time.Now().Add(time.Minute))
				before, _, _ := g.state()
				tc.between(g)
				entered := before.Enter()
				if entered != tc.goesOn || before.Open() != tc.goesOn {
					t.Errorf("%s: entered %t, open %t", tc.reason, entered, before.Open())
				}
				if entered {
					before.Leave()
				}
				if now, open, _ := g.state(); !open || !now.Open() || !now.Enter() || g.Busy() != 1 {
					t.Errorf("%s: nothing begins in the present one", tc.reason)
				}
				g.AllowWritesUntil(time.Time{})
			})
		})
	}
}
