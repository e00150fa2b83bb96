package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// The reasons of the conditions.
const (
	// Succeeded: all handlers have succeeded.
	Succeeded = "Succeeded"
	// Progressing: a handler was not called yet.
	Progressing = "Progressing"
	// Retrying: a handler will be called again.
	Retrying = "Retrying"
	// Failed: a handler has failed permanently.
	Failed = "Failed"
	// Blocked: a handler cannot be called before the object is changed.
	Blocked = "Blocked"
	// Annotated is the reason of Paused: an annotation of the object pauses it.
	Annotated = "Annotated"
	// FailedBefore is a reason of Stalled with status False: a former change has failed permanently, and a later one is
	// being handled. If the later change is reverted, the failure is reported again.
	FailedBefore = "FailedBefore"
)

// textLimit is the limit of one message about all handlers, in bytes. It keeps the output of kubectl readable.
const textLimit = 1024

// HandlerProgress is the progress of one handler.
type HandlerProgress struct {
	// ID is the id of the handler; Attempts is the number of its calls.
	ID       string
	Attempts int
	// Succeeded and Failed are true if the handler is not called any more; Blocked, if it is not called before the
	// object is changed.
	Succeeded, Failed, Blocked bool
	// Message is the text of the last error; empty without one.
	Message string
	// Awaited is the child that the handler waits for; empty without one.
	Awaited string
}

// Report is the input of [Types.Apply]: the state of the handlers of one object.
type Report struct {
	// Generation is the generation of the object that the handlers have seen; zero if the kind does not have one.
	Generation int64
	// Resumed is true if the handlers were called without a change of the object.
	Resumed bool
	// Outcomes are the outcomes of the handlers of the change; empty if no handler had to be called.
	Outcomes []HandlerProgress
	// Paused is the message of a paused object; empty for one that is handled. No other condition changes in a pause.
	Paused string
	// Former is the object before the handlers changed it; nil if unknown. A handler that replaces the whole list drops
	// our conditions. They are restored from Former, so that their transition times stay.
	Former map[string]any
}

// Apply returns the status with the conditions of the report, and whether it differs from the present status. It does
// not modify the present one. A status that cannot have conditions is returned unchanged.
//
// The body must be the newest known one. The conditions of others stay, and so does a higher observedGeneration that
// another writer has set.
func (t Types) Apply(body map[string]any, r Report, now time.Time) (status map[string]any, changed bool) {
	held, list, err := readStatus(body)
	if err != nil {
		held, _ = body["status"].(map[string]any)
		return held, false
	}
	status = make(map[string]any, len(held)+2)
	maps.Copy(status, held)
	fresh := t.restoreDropped(list, r.Former)
	for _, c := range t.computeConditions(fresh, r) {
		if c.Generation = r.Generation; c.Status == "" {
			// Reconciling, Stalled and Paused are only present while they apply.
			fresh = dropCondition(fresh, c.Type)
		} else {
			fresh = putCondition(fresh, c, now)
		}
	}
	status["conditions"] = fresh
	if observed := t.newObservedGeneration(body, held, r); observed > 0 {
		status["observedGeneration"] = observed
	}
	return status, !diff.Equal(list, fresh) || !diff.Equal(held["observedGeneration"], status["observedGeneration"])
}

// restoreDropped returns the list with our conditions that it lacks, as far as the former object has them.
func (t Types) restoreDropped(list []any, former map[string]any) []any {
	_, before, _ := readStatus(former)
	for _, own := range t.TypeNames() {
		if held := findCondition(before, own); held != nil && findCondition(list, own) == nil {
			list = append(slices.Clip(list), held)
		}
	}
	return list
}

// newObservedGeneration returns the new status.observedGeneration; zero leaves it unchanged. A higher one is only
// believed if the object has that generation.
func (t Types) newObservedGeneration(body, status map[string]any, r Report) int64 {
	held, _ := status["observedGeneration"].(int64)
	if !t.WritesObservedGeneration || held > r.Generation && held <= GenerationOf(body) {
		return 0
	}
	return r.Generation
}

// computeConditions returns all conditions, or that of a pause alone. Those without a status must be removed: following
// kstatus, all but Ready are only present while they are abnormal.
func (t Types) computeConditions(list []any, r Report) []Condition {
	if r.Paused != "" {
		return []Condition{{Type: t.Paused, Status: True, Reason: Annotated, Message: r.Paused}}
	}
	ready, reconciling, stalled := Condition{Type: t.Ready}, Condition{Type: t.Reconciling}, Condition{Type: t.Stalled}
	failure := t.formerFailure(list)
	open, lost := splitOutcomes(r.Outcomes)
	switch {
	case len(open) > 0:
		// Some handlers are unfinished. Failures are listed first, because they need attention.
		ready.Status, ready.Reason, ready.Message = False, Progressing, joinTexts(append(lost, open...))
		if open[0].Attempts > 0 && open[0].Awaited == "" {
			ready.Reason = Retrying
		}
		reconciling.Status, reconciling.Reason, reconciling.Message = True, ready.Reason, joinTexts(open)
		// Keep the former failure: the change may be reverted.
		if failure != "" {
			stalled.Status, stalled.Reason, stalled.Message = False, FailedBefore, failure
		}
	case len(lost) > 0:
		// All are finished, but some have failed or are blocked.
		ready.Status, ready.Reason, ready.Message = False, lost[0].conditionReason(), joinTexts(lost)
	case failure != "" && !r.endsFailure(failure):
		// The failure of a former change persists: no later handler has replaced it.
		ready.Status, ready.Reason, ready.Message = False, Failed, failure
	default:
		ready = t.readyCondition(list, r)
	}
	// The object needs help from outside: retries will not happen.
	if ready.Status == False && len(open) == 0 {
		stalled.Status, stalled.Reason, stalled.Message = True, ready.Reason, ready.Message
	}
	return []Condition{ready, reconciling, stalled, {Type: t.Paused}}
}

// readyCondition returns the Ready condition of an object without pending or failed handlers. If no handler had to be
// called, the present reason and message stay.
func (t Types) readyCondition(list []any, r Report) Condition {
	c := Condition{Type: t.Ready, Status: True, Reason: Succeeded, Message: "all handlers have succeeded"}
	if len(r.Outcomes) > 0 {
		return c
	}
	c.Message = "no handler had to be called"
	// Do not replace a more precise message of a former success, which would cost a write.
	if held := findCondition(list, t.Ready); held["status"] == True {
		c.Reason, _ = held["reason"].(string)
		c.Message, _ = held["message"].(string)
	}
	return c
}

// formerFailure returns the message of a former change that has failed permanently; empty without one. Blocked handlers
// are not failures, because a change lets them run.
func (t Types) formerFailure(list []any) string {
	held := findCondition(list, t.Stalled)
	if held["status"] != True && held["reason"] != FailedBefore || held["reason"] == Blocked {
		return ""
	}
	message, _ := held["message"].(string)
	return message
}

// endsFailure reports whether the failure of a former change is over. Any handled change ends it. A resume ends it only
// if a failed handler was called again, which the message contains by its id.
func (r Report) endsFailure(failure string) bool {
	for _, o := range r.Outcomes {
		if !r.Resumed || strings.Contains(failure, "handler "+strconv.Quote(o.ID)) {
			return true
		}
	}
	return false
}

// splitOutcomes returns the unfinished handlers, those with calls first, and the finished ones that did not succeed.
func splitOutcomes(all []HandlerProgress) (open, lost []HandlerProgress) {
	var fresh []HandlerProgress
	for _, o := range all {
		switch {
		case o.Succeeded:
		case o.Failed, o.Blocked:
			lost = append(lost, o)
		// These come first: the first one decides on the reason Retrying.
		case o.Attempts > 0 || o.Awaited != "":
			open = append(open, o)
		default:
			fresh = append(fresh, o)
		}
	}
	return append(open, fresh...), lost
}

// conditionReason returns the reason of a handler that did not succeed.
func (o HandlerProgress) conditionReason() string {
	if o.Failed {
		return Failed
	}
	return Blocked
}

// joinTexts joins the texts of all handlers. Each one gets an equal share of the limit, but at least 128 bytes.
func joinTexts(all []HandlerProgress) string {
	share := max(textLimit/max(len(all), 1), 128)
	var told []string
	for _, o := range all {
		told = append(told, shortenText(o.describeProgress(), share))
	}
	return shortenText(strings.Join(told, "; "), textLimit)
}

// describeProgress describes the state of one handler. The id is quoted, so that messages can be searched for it.
func (o HandlerProgress) describeProgress() string {
	name, message := "handler "+strconv.Quote(o.ID), ""
	if o.Message != "" {
		message = ": " + o.Message
	}
	switch {
	case o.Failed:
		return name + " failed permanently" + message
	case o.Blocked:
		return name + " waits until the object is changed" + message
	case o.Awaited != "":
		return name + " waits for " + o.Awaited
	case o.Attempts == 0:
		return name + " is not called yet"
	default:
		return fmt.Sprintf("%s, attempt %d%s", name, o.Attempts, message)
	}
}
