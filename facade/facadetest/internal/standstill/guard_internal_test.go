package standstill

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGuard shows that a bubble that stands still is reported. Its goroutines stay until the process ends.
func TestGuard(t *testing.T) {
	reported := make(chan string, 2)
	stands := make(chan struct{})
	go synctest.Test(t, func(*testing.T) {
		GuardBubble(func(text string) { reported <- text })
		GuardBubble(func(string) { reported <- "the second guard of a bubble" })
		var held sync.Mutex
		held.Lock()
		close(stands)
		go lockInVain(&held)
		time.Sleep(time.Hour)
	})
	<-stands
	deadline := time.After(time.Minute)
	for text := ""; ; {
		select {
		case text = <-reported:
		case <-deadline:
			t.Fatal("a bubble that stands still must be reported within a minute")
		case <-time.After(10 * time.Millisecond): // in place of the periodic check
			allGuards.checkBubbles(AllStacks)
			continue
		}
		if !strings.Contains(text, "standstill.lockInVain") {
			t.Errorf("the report must name the function that waits:\n%s", text)
		}
		break
	}
}

func lockInVain(held *sync.Mutex) {
	held.Lock()
	defer held.Unlock()
}

func TestGuardEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := GuardBubble(func(string) {})
		allGuards.mu.Lock()
		before := len(allGuards.byBubble)
		allGuards.mu.Unlock()
		end()
		time.Sleep(time.Hour)
		allGuards.mu.Lock()
		defer allGuards.mu.Unlock()
		if len(allGuards.byBubble) != before-1 {
			t.Errorf("the guard must be removed when it ends: %d guards, %d before", len(allGuards.byBubble), before)
		}
	})
}
