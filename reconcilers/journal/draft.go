package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// maxChangedPaths limits the changed paths that are kept of one look, and maxValueLength the bytes of a value. The
// journal holds entries of thousands of objects.
const maxChangedPaths, maxValueLength = 8, 60

// secretPlaceholder replaces a secret value.
const secretPlaceholder = "(secret)"

// Draft collects the decisions of one pass over an object. A nil Draft records nothing.
type Draft struct {
	object          ObjectJournal
	cause           *cause.Cause
	evaluation      Evaluation
	verdictHandlers []*handlers.Handler // the handlers of the verdicts, in the same order
	// isRecorded is set once the look is in the journal.
	isRecorded bool
}

// StartEvaluation starts the draft of a pass that found this cause. It returns nil if nothing is recorded.
func (o ObjectJournal) StartEvaluation(c *cause.Cause) *Draft {
	if o.kind == nil {
		return nil
	}
	d := &Draft{object: o, cause: c}
	d.evaluation = Evaluation{Reason: string(c.Reason), Initial: c.Initial}
	// Only an update has a former state to compare with.
	if c.Reason == cause.Update {
		d.evaluation.ChangedPaths, d.evaluation.OmittedPathCount = changedPaths(c.Diff)
	}
	return d
}

// StartEventEvaluation starts the draft for a raw event and its handlers. It returns nil if nothing is recorded.
func (o ObjectJournal) StartEventEvaluation(c *cause.Cause) *Draft {
	if o.kind == nil {
		return nil
	}
	return &Draft{object: o, cause: c, evaluation: Evaluation{Reason: "event", Type: c.EventType}}
}

// StartBackgroundEvaluation starts the draft for the daemons and timers of an object. It returns nil if nothing is
// recorded.
func (o ObjectJournal) StartBackgroundEvaluation(c *cause.Cause) *Draft {
	if o.kind == nil {
		return nil
	}
	return &Draft{object: o, cause: c, evaluation: Evaluation{Reason: "background"}}
}

// NoteDropped records why an unfinished change is not continued.
func (d *Draft) NoteDropped(what string) {
	if d != nil {
		d.evaluation.DroppedReason = what
	}
}

// NoteUnnoticed records which later state of the object does not trigger handlers, and the remedy.
func (d *Draft) NoteUnnoticed(what string) {
	if d != nil {
		d.evaluation.UnnoticedState = what
	}
}

// AddVerdict records the decision about a handler. An empty reason means that the handler is called.
func (d *Draft) AddVerdict(h *handlers.Handler, stop execution.Stop) {
	if d == nil {
		return
	}
	v := HandlerVerdict{Handler: h.ID, Purpose: h.VerbName(), Adapter: stop.Adapter, Reason: string(stop.Reason)}
	d.explainVerdict(&v, h, stop)
	// A handler can get two verdicts in one pass: it is selected first, and may then turn out not to be due. The later
	// one counts.
	if at := slices.Index(d.verdictHandlers, h); at >= 0 {
		d.evaluation.Verdicts[at] = v
		return
	}
	d.verdictHandlers = append(d.verdictHandlers, h)
	d.evaluation.Verdicts = append(d.evaluation.Verdicts, v)
}

// VerdictFunc returns [Draft.AddVerdict] as a function, or nil if nothing is recorded, so that adapters can skip the
// work.
func (d *Draft) VerdictFunc() func(h *handlers.Handler, stop execution.Stop) {
	if d == nil {
		return nil
	}
	return d.AddVerdict
}

// ClearVerdicts removes all verdicts, because the handlers are selected again.
func (d *Draft) ClearVerdicts() {
	if d != nil {
		d.verdictHandlers, d.evaluation.Verdicts = nil, nil
	}
}

// CurrentEvaluation returns the decisions so far; an empty evaluation if nothing is recorded.
func (d *Draft) CurrentEvaluation() Evaluation {
	if d == nil {
		return Evaluation{}
	}
	return d.evaluation
}

// AddToJournal adds the look to the journal, once. The look at a raw event is only added if a handler was not called:
// each call is recorded as an attempt anyway.
func (d *Draft) AddToJournal() {
	// An object can have many raw events, so looks that led to calls only are not worth an entry each.
	refused := func(v HandlerVerdict) bool { return v.Reason != "" }
	if d == nil || d.isRecorded || d.evaluation.Reason == reasonEvent &&
		!slices.ContainsFunc(d.evaluation.Verdicts, refused) {
		return
	}
	d.isRecorded = true
	d.object.addEntry(Entry{Evaluation: d.object.kind.sharedEvaluation(d.evaluation)})
}

// explainVerdict fills in the expected and the found value of a verdict, as far as its reason has any.
func (d *Draft) explainVerdict(v *HandlerVerdict, h *handlers.Handler, stop execution.Stop) {
	// Each reason stores its operands in stop in its own types, see package execution.
	switch stop.Reason {
	case execution.Asleep:
		if until := stop.Until.UTC(); !until.IsZero() {
			v.Until = &until
		}
	case execution.OtherReason:
		v.Expected, v.Found = fmt.Sprint(stop.Expected), fmt.Sprint(stop.Found)
	case execution.DependencyUnfinished, execution.DependencyFailed:
		// The operands are the ids of the other handlers.
		if ids, ok := stop.Expected.([]string); ok {
			v.Expected = strings.Join(ids, ", ")
		}
	case execution.Exceeded:
		v.Expected, v.Found = fmt.Sprint(stop.Expected), fmt.Sprint(stop.Found)
	case execution.OtherValue:
		// The field has a value that the handler's filter does not accept.
		d.describeField(v, h.Field, h.FilterDescriptions.Value, stop.Found)
		if v.Expected == "" {
			v.Expected = "any value"
		}
	case execution.Unchanged:
		d.describeField(v, h.Field, "a changed value", stop.Found)
	case execution.OtherChange:
		d.describeField(v, h.Field, requiredChange(h.FilterDescriptions), stop.Found)
	case execution.FilteredOut:
		d.describeFilter(v, h, stop.Filter)
	}
}

// requiredChange describes the change of a field that a handler requires.
func requiredChange(w handlers.Words) string {
	var parts []string
	if w.From != "" {
		parts = append(parts, "from "+w.From)
	}
	if w.To != "" {
		parts = append(parts, "to "+w.To)
	}
	return strings.Join(parts, ", ")
}

// describeFilter describes the filter that did not match, in the words of the registration. Only a filter with a path
// has a value that can be shown.
func (d *Draft) describeFilter(v *HandlerVerdict, h *handlers.Handler, place int) {
	// There may be fewer words than filters: such a filter is named by its position.
	if place >= len(h.FilterDescriptions.Filters) {
		v.Expected = fmt.Sprintf("filter %d", place+1)
		return
	}
	criterion := h.FilterDescriptions.Filters[place]
	// A function only returns true or false.
	if criterion.Path == nil {
		v.Expected, v.Found = criterion.Text, "false"
		return
	}
	// Filters look at the whole object, not at its essence, so the value is read from the body.
	found, _ := diff.ResolvePath(d.cause.Body(), criterion.Path)
	d.describeField(v, criterion.Path, criterion.Text, found)
}

// describeField describes the value at the field, unless it is secret. A value that a registration requires of a secret
// field is hidden as well, because a match would reveal the secret.
func (d *Draft) describeField(v *HandlerVerdict, field diff.Path, expected string, found any) {
	v.Field = field.String()
	if d.object.kind.hidesPath(field) {
		v.Expected, v.Found = secretPlaceholder, secretPlaceholder
		return
	}
	v.Expected, v.Found = shortenText(expected), shortValue(found)
}

// shortValue formats a value in at most maxValueLength bytes.
func shortValue(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return shortMapping(value)
	case []any:
		return fmt.Sprintf("a list of %d", len(value))
	case string:
		// Shorten before quoting, so that the closing quote is kept.
		value = shortenText(value)
		text, _ := json.Marshal(value) // a string always encodes
		return string(text)
	default:
		return shortenText(fmt.Sprint(value))
	}
}

// shortMapping formats a small mapping of strings, such as labels, completely; larger ones by their size.
func shortMapping(value map[string]any) string {
	size := 0
	for key, inner := range value {
		text, ok := inner.(string)
		// Nested and large values are not shown, because they could take any space.
		if size += len(key) + len(text); !ok || size > maxValueLength {
			return fmt.Sprintf("a mapping of %d", len(value))
		}
	}
	text, _ := json.Marshal(value) // strings always encode
	return string(text)
}

// shortenText returns the beginning of a long text.
func shortenText(text string) string { return storage.CutText(text, maxValueLength) }

// changedPaths returns the first paths of a diff, and the number of further ones. Paths are shortened, because keys can
// have any length.
func changedPaths(all diff.Diff) (paths []string, more int) {
	for i, item := range all {
		if i == maxChangedPaths {
			return paths, len(all) - maxChangedPaths
		}
		paths = append(paths, shortenText(item.Path.String()))
	}
	return paths, 0
}
