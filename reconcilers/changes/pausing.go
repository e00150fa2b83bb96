package changes

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/storage/controls"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// noteControls keeps the state of the annotations for the metrics, and reports changes of it once.
func (p *pass) noteControls(ctx context.Context, seen *observation) {
	noted := &p.memory.HandledState
	seen.cause.Paused = seen.pause.Covers(seen.cause.Deleting)
	if seen.cause.Paused != noted.IsPaused {
		log, key := logf.FromContext(ctx), keys.ControlKey(p.handling.Prefix, p.object.body, keys.Paused)
		if seen.cause.Paused {
			log.Info("Object is paused by its annotation; its handlers, daemons and timers wait", "annotation", key)
		} else {
			log.Info("Object is not paused any more; handling it", "annotation", key)
			p.memory.pauseReported, p.memory.conditionsGeneration = false, 0
		}
		noted.IsPaused = seen.cause.Paused
	}
	// Kopf's formats do not have the list: only the changes of this process are known.
	if p.handling.KopfTexts {
		return
	}
	failed := len(seen.failures) > 0
	if failed && !noted.HasFailed {
		p.reportFormerFailures(seen.failures)
	}
	noted.HasFailed = failed
}

// pauseObject ends the pass over a paused object, and reports the pause. Nothing is written but the condition.
func (p *pass) pauseObject(ctx context.Context, seen *observation) error {
	p.draft = nil // no decisions about handlers are made
	text := "it waits for the removal of its annotation " +
		keys.ControlKey(p.handling.Prefix, p.object.body, keys.Paused)
	if seen.pause == controls.PausedChanges {
		text += "; a deletion is handled"
	}
	p.journalEntry().RecordPause(text)
	if p.handling.Conditions == nil || seen.cause.Deleting {
		return nil
	}
	matches, err := p.getsConditions(ctx, seen.cause)
	if err != nil || !matches {
		return err
	}
	types, ok := p.handling.Conditions.Acceptance.Types(ctx)
	report := conditions.Report{Paused: fmt.Sprintf("handlers, daemons and timers are paused: %s", text)}
	// Another client that removes the condition is not fought: it is written once for each pause.
	if !ok || types.ReadReported(p.object.body).IsPaused || p.memory.pauseReported {
		return nil
	}
	p.memory.pauseReported = true
	return p.sendConditions(ctx, types, report)
}

// isPausedSince reports whether the answer to an own write shows that the object is paused now.
func (p *pass) isPausedSince() bool {
	pause, _ := p.handling.PauseOf(p.object.body) // the next pass logs the error
	return pause.Covers(p.outcomes.cause.Deleting)
}
