package execution

import (
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// partMessageLimit is how many bytes of JSON the error of a sub-handler takes in its record: there may be hundreds of
// them. The log has all of it.
const partMessageLimit = 256

// part is what is known of a sub-handler in addition.
type part struct {
	// Postponed is true if there is no room on the object for the progress of a sub-handler that was not called yet. It
	// is not called, and leaves no trace.
	Postponed bool
	// Terse is true if there is no room for more text of its next error than there is of the last one.
	Terse bool
	// Timed is true if it matters when it was first selected.
	Timed bool

	sub     bool // whether its handler is finished is all that counts
	compact bool // it needs no record of its own unless there is something to tell
	named   bool // it succeeded, and its handler's record says so in place of its own
	level   int  // how many handlers it is a part of
	own     int  // the length of its id without that of its handler
}

// parts are the sub-handlers of one handler that were met in this process.
type parts struct {
	direct []*HandlerState
	all    map[string]*HandlerState
}

// meet makes the handler remember a sub-handler of its own, or of one of these.
func (e *HandlerState) meet(met *HandlerState, direct bool) {
	if e.parts == nil {
		e.parts = &parts{all: map[string]*HandlerState{}}
	}
	if e.parts.all[met.ID] != nil {
		return
	}
	e.parts.all[met.ID] = met
	if direct {
		e.parts.direct = append(e.parts.direct, met)
	}
}

// Sub is true for sub-handlers.
func (e *HandlerState) Sub() bool { return e.sub }

// Recorded is true if the handler has, or is to have, a record of its own.
func (e *HandlerState) Recorded() bool {
	switch fresh := e.Retries == 0 && e.loaded == nil; {
	case !e.sub:
		return true
	case e.named, e.Postponed && fresh:
		return false
	default:
		return !e.compact || !fresh || e.Timed || e.parts != nil
	}
}

// references are the sub-handlers with records, which are to be purged with its own.
func (e *HandlerState) references() []string {
	if e.parts == nil {
		return e.Subrefs
	}
	var ids []string
	for _, id := range e.Subrefs {
		if e.parts.all[id] == nil {
			ids = append(ids, id)
		}
	}
	for id, met := range e.parts.all {
		if met.Recorded() {
			ids = append(ids, id)
		}
	}
	return distinct(ids)
}

// done are the sub-handlers that need no records because they succeeded. Once the handler itself is finished, it
// matters at most whether there are any.
func (e *HandlerState) done() []string {
	all := e.allDone()
	switch {
	case e.Success:
		return nil
	case e.Failure && len(all) > 0:
		return all[:1]
	default:
		return all
	}
}

func (e *HandlerState) allDone() []string {
	if e.parts == nil {
		return e.Succeeded
	}
	ids := slices.Clone(e.Succeeded)
	for _, met := range e.parts.direct {
		if met.named {
			ids = append(ids, e.relative(met.ID))
		}
	}
	return distinct(ids)
}

func (e *HandlerState) relative(id string) string {
	return strings.TrimPrefix(id, handlers.SubID(e.ID, ""))
}

// Reserved is the record with the most that the next attempt can add to it.
func (e *HandlerState) Reserved(now time.Time) progress.Record {
	r := e.Record()
	r.Stopped, r.Delayed, r.Message = nil, &now, &longest
	return r
}

// longest is a text with an ellipsis, as JSON.
var longest = strings.Repeat("x", partMessageLimit+len(`\u2026`))

// Stored is true if the object has a record of the handler.
func (e *HandlerState) Stored() bool { return e.loaded != nil }

// Tried is true if the handler was called before, or has a record all the same: there is a place for it already.
func (e *HandlerState) Tried() bool { return e.Retries > 0 || e.loaded != nil }

// Naming is how many bytes a record takes to name a sub-handler that succeeded. Levels is how many records refer to it
// if it has a record of its own, in how many bytes each.
func (e *HandlerState) Naming() (bytes, levels, each int) {
	return e.own + len(`"",`), e.level, len(e.ID) + len(`"",`)
}

// distinct are the texts sorted, once each; they are not modified.
func distinct(texts []string) []string {
	if len(texts) == 0 || isDistinct(texts) {
		return texts
	}
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return slices.Compact(texts)
}

func isDistinct(texts []string) bool {
	for i := 1; i < len(texts); i++ {
		if texts[i-1] >= texts[i] {
			return false
		}
	}
	return true
}
