package changes

import (
	"context"
	"fmt"
	"slices"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/controls"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// observeControls reads the annotations that control the handling. Most objects do not have any.
func (p *pass) observeControls(ctx context.Context, seen *observation) {
	o, h := &p.object, p.handling
	if !h.HasControls(o.body) {
		p.memory.answeredRequest = ""
		p.noteControls(ctx, seen)
		return
	}
	var err error
	if seen.pause, err = h.PauseOf(o.body); err != nil {
		p.logIgnored(ctx, err)
	}
	annotations := annotationsOf(o.body)
	key := keys.AnnotationKeyOn(o.body, h.Prefix, "", keys.HandleNow)
	value, _ := annotations[key].(string)
	request, err := controls.ParseRequest(value)
	if err != nil {
		p.logIgnored(ctx, fmt.Errorf("annotation %s: %w", key, err))
	}
	// A client that removes the answer must not have the handlers called again and again.
	if answer := annotations[o.answerKey()]; request.Value != answer && request.Value != p.memory.answeredRequest {
		seen.request, seen.started = request, answer == request.StartedAnswer()
	}
	if request.Value != p.memory.answeredRequest {
		p.memory.answeredRequest = ""
	}
	// Without the list, the failures are not known; a malformed list must not block the object.
	seen.failures, err = controls.ParseFailures(annotationsOf(o.ownBody)[o.failuresKey()])
	if err != nil {
		p.logIgnored(ctx, fmt.Errorf("annotation %s: %w", o.failuresKey(), err))
	}
	p.noteControls(ctx, seen)
}

// answerKey returns the key of the answer to a request.
func (o *object) answerKey() string {
	return keys.AnnotationKeyOn(o.body, o.handling.Prefix, "", keys.HandledNow)
}

// logIgnored logs once that an annotation has no effect.
func (p *pass) logIgnored(ctx context.Context, err error) {
	if p.memory.isNew(err) {
		logging.Warn(logf.FromContext(ctx), "Ignoring an annotation with a value that is not one of its own",
			"reason", err.Error())
	}
}

// replaceCause replaces the cause of an object whose handlers must run again: there is no change, but the handlers are
// selected as for the first handling of the object, or as for the change in which they have failed.
//
// The last-handled configuration stays as it is meanwhile. So an edit is not lost: it follows as an update.
func (p *pass) replaceCause(seen *observation, observed cause.Observation) {
	c, idle := seen.cause, seen.cause.Reason == cause.Noop || seen.cause.Reason == cause.Resume
	seen.edited = c.Reason == cause.Update
	switch {
	case !seen.isRequested(), c.Gone, c.Deleting, c.Paused:
		return
	// An edit was reverted that some handlers have seen: they must see the revert first.
	case idle && seen.interimEssence != nil && !cause.EqualEssences(seen.interimEssence, c.New):
		return
	case seen.request.Mode == controls.All && c.Reason != cause.Create:
		observed.Old = nil
		seen.cause, seen.replacesCause = cause.Detect(observed), true
		// Unlike for a new object, the resume is not over: its handlers run as well.
		seen.cause.Initial = observed.Initial
	// An unfinished change is continued by its own cause.
	case seen.request.Mode == controls.Failed && len(seen.failures) > 0 && (idle || seen.started):
		p.replaceByFormer(seen, observed)
	}
}

// replaceByFormer replaces the cause by that of the failures. The former state of an update is not known any more.
func (p *pass) replaceByFormer(seen *observation, observed cause.Observation) {
	has := func(reason cause.Reason) bool {
		for _, failure := range seen.failures {
			if failure.Reason == string(reason) {
				return true
			}
		}
		return false
	}
	switch observed.Initial = false; {
	case has(cause.Create):
		observed.Old = nil
	case has(cause.Update):
		observed.Old, observed.VeiledPaths = p.handling.Lens.Redaction.UnknownEssence(observed.New)
	default:
		observed.Initial = true
	}
	seen.cause, seen.replacesCause = cause.Detect(observed), true
}

// selectHandlers selects the handlers of the cause. If the failed handlers must run again, these are selected, as far
// as they still match the object. The change that they were called for is over, so it does not matter.
func (p *pass) selectHandlers(ctx context.Context, seen *observation) (chosen []*adapters.HandlerChain, err error) {
	if !seen.replacesCause || seen.request.Mode != controls.Failed {
		return adapters.Select(ctx, p.handling.Handlers, seen.cause, p.draft.VerdictFunc())
	}
	for _, h := range p.handling.Handlers {
		own := h.Description
		repeats := func(other *adapters.HandlerChain) bool { return own.RepeatsFunction(other.Description) }
		if !seen.hasFailed(h) || slices.ContainsFunc(chosen, repeats) {
			continue
		}
		one := []*adapters.HandlerChain{h}
		if found, err := adapters.InterestIn(ctx, one, seen.cause, p.draft.VerdictFunc()); err != nil {
			return nil, err
		} else if found.HasChangeHandler {
			chosen = append(chosen, h)
			p.draft.AddVerdict(own, execution.Stop{})
		}
	}
	return chosen, nil
}

// hasFailed reports whether the handler, or one of its sub-handlers, is among the failures.
func (c *control) hasFailed(h *adapters.HandlerChain) bool {
	for id, failure := range c.failures {
		reason := h.Description.Reason
		if isOwnID(h.Description.ID, id) && (reason == "" || string(reason) == failure.Reason) {
			return true
		}
	}
	return false
}

// beginRequest makes the handlers of a request due: it removes their records, once for each request. Without any
// handler to call, it answers the request.
func (p *pass) beginRequest(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	records := seen.state.AllStates()
	// No failure is known, and no change is unfinished.
	idle := seen.request.Mode == controls.Failed && seen.cause.Reason == cause.Noop && !seen.replacesCause
	switch {
	case !seen.isRequested() || !wanted.hasChangeHandler || seen.cause.Reason == cause.Free:
		return continuePass, nil
	case idle && (len(records) == 0 || seen.started):
		logf.FromContext(ctx).Info("No handler of the object has failed; nothing to run again",
			"request", seen.request.Value)
		patch := patching.Patch{Merge: map[string]any{}}
		p.object.setAnnotation(&patch, p.object.answerKey(), seen.request.Value)
		p.memory.answeredRequest = seen.request.Value
		return restartPass, p.object.sendPatch(ctx, patch)
	case seen.started || idle:
		return continuePass, nil
	}
	logf.FromContext(ctx).Info("Handlers of the object run again, as an annotation requests",
		"request", seen.request.Value, "reason", seen.cause.Reason)
	if len(records) == 0 {
		return continuePass, nil
	}
	return restartPass, p.restartHandlers(ctx, seen)
}

// restartHandlers removes the records of the handlers that must run again: of all, or of those that have not succeeded.
// The answer shows the next round that this was done.
func (p *pass) restartHandlers(ctx context.Context, seen *observation) error {
	o, patch := &p.object, patching.Patch{Merge: map[string]any{}}
	all := seen.replacesCause || seen.request.Mode == controls.All
	for _, h := range seen.state.AllStates() {
		if !all && h.Success {
			continue
		}
		ids := slices.Concat([]string{h.ID}, h.Subrefs)
		err := execution.PurgeRecords(p.handling.Progress, patch.Merge, o.storageBody, ids)
		if err := o.ignoreIfDeleting(ctx, err); err != nil {
			return err
		}
		for _, id := range ids {
			delete(p.memory.unstoredRecords, id)
		}
	}
	if all {
		p.handling.InterimStorage.PurgeEssence(&patch, o.storageBody)
	}
	if !seen.replacesCause {
		o.removeFailures(&patch)
	}
	o.setAnnotation(&patch, o.answerKey(), seen.request.StartedAnswer())
	p.memory.openRecords = openRecords{} // the removed records must not be restored as lost ones
	return o.sendPatch(ctx, patch)
}

// answerRequest adds the answer to the last write of a change, or the note that the request is being handled to an
// earlier one.
func (o *object) answerRequest(patch *patching.Patch, seen *observation, finished bool) {
	answer, _ := annotationsOf(o.body)[o.answerKey()].(string)
	switch {
	case seen.isRequested() && finished:
		o.setAnnotation(patch, o.answerKey(), seen.request.Value)
	case seen.isRequested() && !seen.started:
		o.setAnnotation(patch, o.answerKey(), seen.request.StartedAnswer())
	// The request was removed before its handlers were finished.
	case !seen.isRequested() && controls.IsUnfinished(answer):
		o.setAnnotation(patch, o.answerKey(), nil)
	}
}

// hasAnswered reports whether the object has the answer to the request.
func (o *object) hasAnswered(request controls.RunRequest) bool {
	return annotationsOf(o.body)[o.answerKey()] == request.Value
}

// noteControls keeps the state of the annotations for the metrics, and reports changes of it once.
func (p *pass) noteControls(ctx context.Context, seen *observation) {
	noted := &p.memory.HandledState
	seen.cause.Paused = seen.pause.Covers(seen.cause.Deleting)
	if seen.cause.Paused != noted.IsPaused {
		log, key := logf.FromContext(ctx), keys.AnnotationKeyOn(p.object.body, p.handling.Prefix, "", keys.Paused)
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
		keys.AnnotationKeyOn(p.object.body, p.handling.Prefix, "", keys.Paused)
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
