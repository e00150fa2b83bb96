package changes

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/controls"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// pass handles one object once. It takes several rounds if its own writes change the object.
type pass struct {
	handling           *ChangeHandling
	memory             *Memory
	object             object
	outcomes           *outcomes      // of the cause whose handlers are called or written; nil before
	result             PassResult     // the facts for the caller that were found so far
	exiting            bool           // the operator is exiting or paused: nothing new begins
	rewriteDelay       time.Duration  // the delay before lost memory is written; zero if nothing is lost
	waitsForBackground bool           // the deletion handlers wait for background handlers
	draft              *journal.Draft // the decisions of this round; nil if they are not recorded
	ownCalls           *ownCalls      // of this round, if our own write has caused it; nil otherwise
	preview            *Preview       // the decisions of a pass that calls no handlers; nil in an ordinary pass
}

// verdict is the decision of a step about the following steps.
type verdict int

const (
	continuePass verdict = iota
	finishPass           // the pass is finished
	restartPass          // our own write has changed the object: observe it again
)

// journalEntry returns the journal's entry of the object.
func (p *pass) journalEntry() journal.ObjectJournal { return p.handling.Journal.ForBody(p.object.body) }

// filterError classifies the error of a filter. If the object does not decode into the filter's type, retries are
// useless.
func filterError(err error) error {
	if execution.IsUndecodable(err) {
		return &BlockedError{Err: err}
	}
	return err
}

// ownCalls are the calls of one pass that our own former write has caused.
type ownCalls struct {
	calledHandlers, writingHandlers []string
	fields                          []diff.Path // the fields that these calls have changed
}

// observation is the result of comparing the object with the memory on it, at the start of a round.
type observation struct {
	control
	cause           *cause.Cause
	lastHandled     diffbase.Essence // the last-handled configuration as stored
	interimEssence  diffbase.Essence // the essence that the first successful handler of the cause saw; nil if none
	memoryLost      bool             // the object was handled, and another client has removed that memory
	hasStaleInterim bool             // the interim essence on the object belongs to another cause
	state           *execution.State // first all records of our handlers, later the progress for the cause
}

// control is what the annotations of the object request in this round, and the failures that it has recorded.
type control struct {
	request       controls.RunRequest // not answered yet; the zero value is none
	started       bool                // a former round has begun to handle the request
	replacesCause bool                // the request has replaced the cause: the last-handled configuration stays
	edited        bool                // the replaced cause is an update, which follows
	failures      controls.Failures   // the handlers that had failed permanently when the last change ended
	pause         controls.Pause
}

// isRequested reports whether the handlers must run again.
func (c *control) isRequested() bool { return c.request.Mode != "" }

// interest is the need of the handlers for an object.
type interest struct {
	hasChangeHandler     bool // a changing handler matches, for any reason; otherwise the object is ignored
	needsFinalizer       bool // the object needs the finalizer
	hasRunningBackground bool // the object is being deleted, and a background handler is still running
}

// outcomes holds the results of the handlers of one cause, including those that the API server does not have yet. If a
// write fails, Memory keeps them unchanged, and the next pass writes them.
type outcomes struct {
	handling             *ChangeHandling // the Handling that writes them
	cause                *cause.Cause
	observation          *observation     // the observation of the pass that writes
	state                *execution.State // the progress of the handlers
	interimEssence       diffbase.Essence // the essence that the first successful handler of the cause saw; nil if none
	mustPurge            bool             // the next write removes records of former causes
	hasRunningBackground bool             // the object is being deleted, and a background handler is still running
	called               bool             // this process has called a handler
	callsEnded           bool             // no handler can be called now
	getsConditions       bool             // the object gets conditions
	handlersAgree        bool             // all handlers have seen the essence that ends the cause
	essenceToStore       diffbase.Essence // the essence to store as last handled when the cause ends
	leavesFilters        bool             // last includes own patches that take the object out of all filters
	// handlers that keep the object have failed: the state they saw is stored as last handled
	hasHoldingFailure bool
	// handlers have failed permanently at the end of the cause
	hasFailed   bool
	workingCopy map[string]any // the object with the changes of the handlers; nil if they made none

	attempts       []*execution.Attempt // those with unwritten changes or outcomes
	unwrittenSince time.Time            // since when the oldest outcome is unwritten; zero if none is
}

// markWritten marks everything as written.
func (o *outcomes) markWritten() {
	o.state.MarkWritten()
	o.reportDecided()
	o.attempts, o.unwrittenSince, o.mustPurge = nil, time.Time{}, false
}

// reportDecided reports the outcomes of the attempts: they cannot change any more.
func (o *outcomes) reportDecided() {
	for _, a := range o.attempts {
		a.ReportDecided()
	}
}

// canClose reports whether the cause can be closed.
func (o *outcomes) canClose() bool {
	return o.state.AllFinished() && !o.hasRunningBackground && !o.isKept()
}

// isKept reports whether the deletion has failed permanently: all handlers are finished, and the failure of some keeps
// the object.
func (o *outcomes) isKept() bool {
	return o.cause.Deleting && o.state.AllFinished() && len(o.failedHolders()) > 0
}

// releasesFinalizer reports whether the next write removes our finalizer from an object being deleted.
func (o *outcomes) releasesFinalizer() bool { return o.cause.Deleting && o.canClose() }

// failedHolders returns the handlers whose permanent failure keeps the object that is being deleted.
func (o *outcomes) failedHolders() (failed []*execution.HandlerState) {
	for _, h := range o.state.AllStates() {
		if h.IsCounted() && h.Failure && o.handling.holdsOnFailure(h.ID) {
			failed = append(failed, h)
		}
	}
	return failed
}

// hasNewHoldingFailure reports whether the next write contains the failure of a handler that keeps the object, or of a
// sub-handler of one. A handler that fails because of its sub-handlers is left out: it saw nothing new since their
// failures.
func (o *outcomes) hasNewHoldingFailure() bool {
	return slices.ContainsFunc(o.attempts, func(a *execution.Attempt) bool {
		var bySubs *failedSubsError
		failed := a.Outcome.Final && a.Outcome.Err != nil && !errors.As(a.Outcome.Err, &bySubs)
		own := a.Call.Handler
		return failed && a.Call.Cause == o.cause && o.handling.holdsOnFailure(cmp.Or(own.Root, own.ID))
	})
}

// callsHandler reports whether the cause calls the handler with this id, or the one that it is a sub-handler of.
func (o *outcomes) callsHandler(id string) bool {
	for _, h := range o.state.AllStates() {
		if h.IsCounted() && isOwnID(h.ID, id) {
			return true
		}
	}
	return false
}

// errNotKept explains memory that is missing after a successful write.
var errNotKept = errors.New(
	"the API server took the write, but did not keep the stored progress or configuration: if it is in the status, " +
		"the CRD must allow that field, such as with x-kubernetes-preserve-unknown-fields",
)
