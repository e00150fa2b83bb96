package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

func TestPassSpacesTheErrorsOfTheFramework(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, creating("c"))
		w.refuse = unavailable()
		for _, delay := range settings.DefaultErrorDelays[:5] {
			w.wantAgain("refused", delay)
			time.Sleep(delay - time.Millisecond)
			written := w.writes
			w.wantAgain("an event during the delay", time.Millisecond)
			if w.writes != written {
				t.Errorf("the object was written to during the delay of %s", delay)
			}
			time.Sleep(time.Millisecond)
		}
		w.refuse = nil
		if result := w.pass(); result.RequeueAfter != 0 {
			t.Errorf("after a success nothing is due: %v", result)
		}
		w.deliver()
		w.edit(`{"metadata":{"annotations":{"` + handled + `":null}}}`)
		w.deliver()
		w.refuse = unavailable()
		w.wantAgain("refused after a success", time.Second)
		w.wantCalls("what was done is kept, not done again; and done anew after the memory was taken away", "c", "c")
		if len(w.logged) != 6 {
			t.Errorf("one line for each failure, and none for the events meanwhile: %q", w.logged)
		}
	})
}

func TestPassSaysOnceThatAnObjectIsBlocked(t *testing.T) {
	w := newWorld(t, creating("c"))
	spoil := func(value string) {
		w.edit(`{"metadata":{"annotations":{"` + handled + `":` + value + `}}}`)
		w.deliver()
		for range 3 {
			if result := w.pass(); result.RequeueAfter != 0 {
				t.Errorf("a blocked object waits for its change, not for time: %v", result)
			}
		}
	}
	spoil(`"{oops"`)
	spoil(`"[1]"`)
	w.wantCalls("nobody is called")
	if len(w.logged) != 2 || !strings.Contains(w.logged[0], "until it is changed") {
		t.Errorf("one line for each reason: %q", w.logged)
	}
	spoil("null")
	w.wantCalls("the memory is mended", "c")
	spoil(`"[1]"`)
	if len(w.logged) != 3 {
		t.Errorf("the same reason is said again after it was gone: %q", w.logged)
	}
	if w.writes != 1 {
		t.Errorf("a blocked object was written to: %d writes", w.writes)
	}
}

// panicking is a storage of a user's that panics while it is broken.
type panicking struct {
	diffbase.Storage
	broken *bool
}

func (p panicking) Fetch(body map[string]any) (diffbase.Essence, error) {
	if *p.broken {
		panic("boo")
	}
	return p.Storage.Fetch(body)
}

// A panic is told once, with its object and its stack, however often the object is tried again.
func TestPassLogsAPanicOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		w := newWorld(t, creating("c"))
		lens := w.controller.changes.Lens
		lens.Diffbase = storages.Diffbase(panicking{lens.Diffbase, &broken})
		for range 5 {
			time.Sleep(w.pass().RequeueAfter)
		}
		if len(w.logged) != 1 || !strings.Contains(
			w.logged[0], `"name"="a"`,
		) || !strings.Contains(w.logged[0], `"stack"`) {
			t.Errorf("%d lines: %v", len(w.logged), w.logged)
		}
		broken = false
		w.pass()
		w.wantCalls("mended", "c")
		w.deliver()
		w.pass()
		w.wantForgotten("mended")
	})
}
