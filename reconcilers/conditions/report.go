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
	// Succeeded: all handlers have.
	Succeeded = "Succeeded"
	// Progressing: a handler was not called yet.
	Progressing = "Progressing"
	// Retrying: a handler is called again later.
	Retrying = "Retrying"
	// Failed: a handler has failed for good.
	Failed = "Failed"
	// Blocked: a handler cannot be called as long as the object is as it is.
	Blocked = "Blocked"
	// FailedBefore is of Stalled while it is false: a former change has failed for good, and another one is being
	// handled. Should that be taken back, the failure is what remains.
	FailedBefore = "FailedBefore"
)

// textLimit is for what is told of all handlers together, in bytes: people read it in a terminal.
const textLimit = 1024

// Outcome is how far one handler has come.
type Outcome struct {
	// ID is the handler's; Attempts counts its calls.
	ID       string
	Attempts int
	// Succeeded and Failed say that it is not called any more, and Blocked that it is not called before the object is
	// changed.
	Succeeded, Failed, Blocked bool
	// Message is the text of its last error; empty if there is none.
	Message string
	// Awaited is the child that it waits for; empty is none.
	Awaited string
}

// Report is what there is to be told of an object.
type Report struct {
	// Generation is that of the object which the handlers have seen; zero if the kind has none.
	Generation int64
	// Resumed is true if the handlers were called for no change of the object.
	Resumed bool
	// Outcomes are those of the handlers of the change; with none, nothing had to be done.
	Outcomes []Outcome
	// Former is the object before the handlers changed it; nil is not known. One that sets the list as a whole leaves
	// the conditions out, whose times go on nevertheless.
	Former map[string]any
}

// Apply gives the status that tells of the report, and whether it differs from the present one, which stays as it is. A
// status that cannot have conditions is left alone.
//
// The body is the newest one: what others have in the list is kept, and a higher generation that somebody else has
// observed.
func (t Types) Apply(body map[string]any, r Report, now time.Time) (status map[string]any, changed bool) {
	held, list, err := read(body)
	if err != nil {
		held, _ = body["status"].(map[string]any)
		return held, false
	}
	status = maps.Clone(held)
	if status == nil {
		status = map[string]any{}
	}
	fresh := t.recalled(list, r.Former)
	for _, c := range t.judge(fresh, r) {
		if c.Generation = r.Generation; c.Status == "" {
			fresh = without(fresh, c.Type)
		} else {
			fresh = put(fresh, c, now)
		}
	}
	status["conditions"] = fresh
	if observed := t.observed(body, held, r); observed > 0 {
		status["observedGeneration"] = observed
	}
	return status, !diff.Equal(list, fresh) || !diff.Equal(held["observedGeneration"], status["observedGeneration"])
}

// recalled gives the list with those of the conditions that it lacks, and that the former object has.
func (t Types) recalled(list []any, former map[string]any) []any {
	_, before, _ := read(former)
	for _, own := range t.All() {
		if held := find(before, own); held != nil && find(list, own) == nil {
			list = append(slices.Clip(list), held)
		}
	}
	return list
}

// observed is what the whole status is about; zero to leave it as it is.
func (t Types) observed(body, status map[string]any, r Report) int64 {
	held, _ := status["observedGeneration"].(int64)
	if !t.WholeStatus || held > r.Generation && held <= GenerationOf(body) {
		return 0
	}
	return r.Generation
}

// judge gives all three conditions. One without a status is not to be there: Reconciling and Stalled say something by
// being there.
func (t Types) judge(list []any, r Report) []Condition {
	ready, reconciling, stalled := Condition{Type: t.Ready}, Condition{Type: t.Reconciling}, Condition{Type: t.Stalled}
	failure := t.formerFailure(list)
	open, lost := split(r.Outcomes)
	switch {
	case len(open) > 0:
		ready.Status, ready.Reason, ready.Message = False, Progressing, texts(append(lost, open...))
		if open[0].Attempts > 0 && open[0].Awaited == "" {
			ready.Reason = Retrying
		}
		reconciling.Status, reconciling.Reason, reconciling.Message = True, ready.Reason, texts(open)
		if failure != "" {
			stalled.Status, stalled.Reason, stalled.Message = False, FailedBefore, failure
		}
	case len(lost) > 0:
		ready.Status, ready.Reason, ready.Message = False, lost[0].reason(), texts(lost)
	case failure != "" && !r.mends(failure):
		ready.Status, ready.Reason, ready.Message = False, Failed, failure
	default:
		ready = t.satisfied(list, r)
	}
	if ready.Status == False && len(open) == 0 {
		stalled.Status, stalled.Reason, stalled.Message = True, ready.Reason, ready.Message
	}
	return []Condition{ready, reconciling, stalled}
}

// satisfied is the condition of an object with which all is well. If nothing had to be done, it stays as it is.
func (t Types) satisfied(list []any, r Report) Condition {
	c := Condition{Type: t.Ready, Status: True, Reason: Succeeded, Message: "all handlers have succeeded"}
	if len(r.Outcomes) > 0 {
		return c
	}
	c.Message = "no handler had to be called"
	if held := find(list, t.Ready); held["status"] == True {
		c.Reason, _ = held["reason"].(string)
		c.Message, _ = held["message"].(string)
	}
	return c
}

// formerFailure is what a former change has failed with for good; empty if it has not.
func (t Types) formerFailure(list []any) string {
	held := find(list, t.Stalled)
	if held["status"] != True && held["reason"] != FailedBefore || held["reason"] == Blocked {
		return ""
	}
	message, _ := held["message"].(string)
	return message
}

// mends tells whether a failure of a former change is past. A change that handlers have handled ends it; for a
// resume, it must have been one of the handlers that had failed.
func (r Report) mends(failure string) bool {
	for _, o := range r.Outcomes {
		if !r.Resumed || strings.Contains(failure, "handler "+strconv.Quote(o.ID)) {
			return true
		}
	}
	return false
}

// split gives those that go on, with those before all others that have been called; and those that do not, without a
// success.
func split(all []Outcome) (open, lost []Outcome) {
	var fresh []Outcome
	for _, o := range all {
		switch {
		case o.Succeeded:
		case o.Failed, o.Blocked:
			lost = append(lost, o)
		case o.Attempts > 0 || o.Awaited != "":
			open = append(open, o)
		default:
			fresh = append(fresh, o)
		}
	}
	return append(open, fresh...), lost
}

func (o Outcome) reason() string {
	if o.Failed {
		return Failed
	}
	return Blocked
}

// texts tells of handlers, each with its share of the room.
func texts(all []Outcome) string {
	share := max(textLimit/max(len(all), 1), 128)
	var told []string
	for _, o := range all {
		told = append(told, shortened(o.text(), share))
	}
	return shortened(strings.Join(told, "; "), textLimit)
}

func (o Outcome) text() string {
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
