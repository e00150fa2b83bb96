package informers

import (
	"testing"
	"time"
)

// TestPeriod shows that the resync period of informers is ten hours, varied by up to one hour.
func TestPeriod(t *testing.T) {
	least, most := resyncPeriod(), resyncPeriod()
	for range 1000 {
		drawn := resyncPeriod()
		least, most = min(least, drawn), max(most, drawn)
	}
	if least < 9*time.Hour || least > 10*time.Hour || most < 10*time.Hour || most > 11*time.Hour {
		t.Errorf("the periods range from %s to %s", least, most)
	}
}
