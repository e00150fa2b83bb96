package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// TestPassSpacesTheErrorsOfTheFramework shows that passes after errors of the framework are delayed increasingly, and
// that events do not shorten the delays.
func TestPassSpacesTheErrorsOfTheFramework(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newObjectFixture(t, newCreateHandler("c"))
		w.writeErr = unavailable()
		for _, delay := range kind.DefaultErrorDelays[:5] {
			w.requireRequeue("after a refused write", delay)
			time.Sleep(delay - time.Millisecond)
			written := w.writes
			w.requireRequeue("an event during the delay", time.Millisecond)
			if w.writes != written {
				t.Errorf("the object was patched during the delay of %s", delay)
			}
			time.Sleep(time.Millisecond)
		}
		w.writeErr = nil
		if result := w.pass(); result.RequeueAfter != 0 {
			t.Errorf("a successful pass requests another one: %v", result)
		}
		w.updateCache()
		w.edit(`{"metadata":{"annotations":{"` + lastHandledKey + `":null}}}`)
		w.updateCache()
		w.writeErr = unavailable()
		w.requireRequeue("refused again after a success", time.Second)
		w.requireCalls("the result was kept over the failures, and the handler ran again after its record was removed",
			"c", "c")
		if len(w.logLines) != 6 {
			t.Errorf("want one line for each failure and none for events during the delays: %q", w.logLines)
		}
	})
}

// TestPassSaysOnceThatAnObjectIsBlocked shows that a malformed annotation blocks its object, with one line for each
// cause.
func TestPassSaysOnceThatAnObjectIsBlocked(t *testing.T) {
	w := newObjectFixture(t, newCreateHandler("c"))
	spoil := func(value string) {
		w.edit(`{"metadata":{"annotations":{"` + lastHandledKey + `":` + value + `}}}`)
		w.updateCache()
		for range 3 {
			if result := w.pass(); result.RequeueAfter != 0 {
				t.Errorf("a blocked object requests a pass: %v", result)
			}
		}
	}
	spoil(`"{oops"`)
	spoil(`"[1]"`)
	w.requireCalls("while blocked")
	if len(w.logLines) != 2 || !strings.Contains(w.logLines[0], "until it is changed") {
		t.Errorf("want one line for each cause: %q", w.logLines)
	}
	spoil("null")
	w.requireCalls("after the annotation was removed", "c")
	spoil(`"[1]"`)
	if len(w.logLines) != 3 {
		t.Errorf("the same cause is not logged again after it was fixed: %q", w.logLines)
	}
	if w.writes != 1 {
		t.Errorf("a blocked object was patched: %d writes", w.writes)
	}
}

// panickingStorage is a user's storage that panics while it is broken.
type panickingStorage struct {
	diffbase.Storage
	broken *bool
}

func (p panickingStorage) Fetch(body map[string]any) (diffbase.Essence, error) {
	if *p.broken {
		panic("boo")
	}
	return p.Storage.Fetch(body)
}

// TestPassLogsAPanicOnce shows that a panic is logged once, with its object and its stack, although the object is
// retried.
func TestPassLogsAPanicOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		w := newObjectFixture(t, newCreateHandler("c"))
		lens := w.controller.changes.Lens
		lens.Diffbase = storages.IsolateDiffbase(panickingStorage{lens.Diffbase, &broken})
		for range 5 {
			time.Sleep(w.pass().RequeueAfter)
		}
		if len(w.logLines) != 1 || !strings.Contains(
			w.logLines[0], `"name"="a"`,
		) || !strings.Contains(w.logLines[0], `"stack"`) {
			t.Errorf("want one line with name and stack, got %d: %v", len(w.logLines), w.logLines)
		}
		broken = false
		w.pass()
		w.requireCalls("with the storage mended", "c")
		w.updateCache()
		w.pass()
		w.requireForgotten("with the storage mended")
	})
}
