package informers

import (
	"testing"
	"time"
)

// Informers come back after ten hours, more or less.
func TestPeriod(t *testing.T) {
	least, most := period(), period()
	for range 1000 {
		drawn := period()
		least, most = min(least, drawn), max(most, drawn)
	}
	if least < 9*time.Hour || least > 10*time.Hour || most < 10*time.Hour || most > 11*time.Hour {
		t.Errorf("the periods are from %s to %s", least, most)
	}
}
