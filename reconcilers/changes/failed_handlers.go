package changes

import (
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/controls"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// failuresKey returns the key of the failed handlers on this object. Like the other memory, the list belongs to the
// uid.
func (o *object) failuresKey() string { return o.handling.failuresKey(o.storageBody) }

// isOwnID reports whether the id is that of the handler or of one of its sub-handlers.
func isOwnID(handler, id string) bool {
	rest, ok := strings.CutPrefix(id, handler)
	return ok && (rest == "" || rest[0] == '/')
}

// recordFailures adds the list of the handlers that have failed permanently to the last write of a change: the records
// end with the change, and a failure must stay visible. It replaces the list of the change before.
func (p *pass) recordFailures(handled *outcomes, patch *patching.Patch) error {
	o, seen := &p.object, handled.observation
	failed := controls.Failures{}
	// A resume is not a change: it says nothing about the handlers that it does not call.
	if handled.cause.Reason == cause.Resume && !seen.replacesCause {
		for id, failure := range seen.failures {
			if !handled.callsHandler(id) {
				failed[id] = failure
			}
		}
	}
	for _, h := range handled.state.AllStates() {
		if h.Active && h.Failure {
			failed[h.ID] = p.failureOf(handled, h)
		}
	}
	handled.hasFailed = len(failed) > 0
	if p.handling.KopfTexts || handled.cause.Deleting { // Kopf does not have the list
		return nil
	}
	text, err := failed.Encode()
	if err != nil {
		return err
	}
	if text == "" {
		o.removeFailures(patch)
		return nil
	}
	// The list is not worth a refused write.
	key, used := o.failuresKey(), o.annotationsSize(patch)
	if annotationsOf(o.storageBody)[key] != text && used+len(key)+len(text) <= storage.AnnotationsLimit {
		o.setAnnotation(patch, key, text)
	}
	return nil
}

// failureOf returns the failure of a handler for the list. The error can quote any value of the object, so it is left
// out if some of the values are secret.
func (p *pass) failureOf(handled *outcomes, h *execution.HandlerState) controls.Failure {
	failure := controls.Failure{Reason: string(handled.cause.Reason)}
	if h.Stopped != nil {
		failure.At = *h.Stopped
	}
	if h.Message != nil && len(p.handling.Lens.Redaction.Paths) == 0 {
		failure.Message = *h.Message
	}
	return failure
}

// removeFailures adds the removal of the list to the patch, if the object has it.
func (o *object) removeFailures(patch *patching.Patch) {
	if key := o.failuresKey(); annotationsOf(o.storageBody)[key] != nil {
		o.setAnnotation(patch, key, nil)
	}
}

// endFormerFailures removes the list with the first write of a new change: its handlers are being called.
func (p *pass) endFormerFailures(handled *outcomes, patch *patching.Patch) {
	reason := handled.cause.Reason
	if !handled.observation.replacesCause && (reason == cause.Create || reason == cause.Update) {
		p.object.removeFailures(patch)
	}
}

// reportFormerFailures records in the journal which handlers had failed before this process was started. Calls of this
// process are in the journal already.
func (p *pass) reportFormerFailures(failures controls.Failures) {
	for _, h := range p.handling.Handlers {
		for id, failure := range failures {
			reason := h.Description.Reason
			if h.Description.ID == id && (reason == "" || string(reason) == failure.Reason) {
				p.journalEntry().RecordFormerFailure(h.Description, failure.At, failure.Message)
			}
		}
	}
}
