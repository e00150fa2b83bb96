package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// mostChanged is how many changed paths are kept of one look, longestValue how many bytes of a value.
const mostChanged, longestValue = 8, 60

// notShown stands for a value that is secret.
const notShown = "(secret)"

// Draft is a look that is being taken at an object. Nil is one that nobody wants to know of.
type Draft struct {
	object Object
	cause  *cause.Cause
	look   Look
	asked  []*handlers.Handler // whose the verdicts are
	noted  bool
}

// Look begins a look that has found the cause; nil if nothing is noted.
func (o Object) Look(c *cause.Cause) *Draft {
	if o.kind == nil {
		return nil
	}
	d := &Draft{object: o, cause: c}
	d.look = Look{Reason: string(c.Reason), Initial: c.Initial}
	if c.Reason == cause.Update {
		d.look.Changed, d.look.More = changed(c.Diff)
	}
	return d
}

// LookAtEvent is a look at a raw event, for the handlers of these; nil if nothing is noted.
func (o Object) LookAtEvent(c *cause.Cause) *Draft {
	if o.kind == nil {
		return nil
	}
	return &Draft{object: o, cause: c, look: Look{Reason: "event", Type: c.Type}}
}

// LookForBackground is a look at what is to run in the background; nil if nothing is noted.
func (o Object) LookForBackground(c *cause.Cause) *Draft {
	if o.kind == nil {
		return nil
	}
	return &Draft{object: o, cause: c, look: Look{Reason: "background"}}
}

// Dropped says which unfinished change is given up.
func (d *Draft) Dropped(what string) {
	if d != nil {
		d.look.Dropped = what
	}
}

// Unnoticed says which later state of the object is not noticed, and what helps.
func (d *Draft) Unnoticed(what string) {
	if d != nil {
		d.look.Unnoticed = what
	}
}

// Verdict notes what is said about a handler; one without a reason has it called.
func (d *Draft) Verdict(h *handlers.Handler, stop execution.Stop) {
	if d == nil {
		return
	}
	v := Verdict{Handler: h.ID, On: h.On(), By: stop.By, Why: string(stop.Why)}
	d.explain(&v, h, stop)
	if at := slices.Index(d.asked, h); at >= 0 {
		d.look.Verdicts[at] = v // a handler that was selected is not due
		return
	}
	d.asked = append(d.asked, h)
	d.look.Verdicts = append(d.look.Verdicts, v)
}

// Teller is Verdict; nil if nothing is noted.
func (d *Draft) Teller() func(h *handlers.Handler, stop execution.Stop) {
	if d == nil {
		return nil
	}
	return d.Verdict
}

// Forget takes back the verdicts: the handlers are asked anew.
func (d *Draft) Forget() {
	if d != nil {
		d.asked, d.look.Verdicts = nil, nil
	}
}

// Note adds the look to the journal, once. Of a raw event, it is worth that only if somebody did not want it: each call
// is an attempt.
func (d *Draft) Note() {
	refused := func(v Verdict) bool { return v.Why != "" }
	if d == nil || d.noted || d.look.Reason == reasonEvent && !slices.ContainsFunc(d.look.Verdicts, refused) {
		return
	}
	d.noted = true
	d.object.note(Entry{Look: d.object.kind.sharedLook(d.look)})
}

// explain fills in what was expected and found.
func (d *Draft) explain(v *Verdict, h *handlers.Handler, stop execution.Stop) {
	switch stop.Why {
	case execution.Asleep:
		if until := stop.Until.UTC(); !until.IsZero() {
			v.Until = &until
		}
	case execution.OtherReason:
		v.Expected, v.Found = fmt.Sprint(stop.Expected), fmt.Sprint(stop.Found)
	case execution.Awaiting, execution.Missed:
		if ids, ok := stop.Expected.([]string); ok {
			v.Expected = strings.Join(ids, ", ")
		}
	case execution.Exceeded:
		v.Expected, v.Found = fmt.Sprint(stop.Expected), fmt.Sprint(stop.Found)
	case execution.OtherValue:
		d.atField(v, h.Field, h.Words.Value, stop.Found)
		if v.Expected == "" {
			v.Expected = "any value"
		}
	case execution.Unchanged:
		d.atField(v, h.Field, "a changed value", stop.Found)
	case execution.OtherChange:
		d.atField(v, h.Field, change(h.Words), stop.Found)
	case execution.FilteredOut:
		d.atFilter(v, h, stop.Filter)
	}
}

func change(w requirements.Words) string {
	var parts []string
	if w.From != "" {
		parts = append(parts, "from "+w.From)
	}
	if w.To != "" {
		parts = append(parts, "to "+w.To)
	}
	return strings.Join(parts, ", ")
}

func (d *Draft) atFilter(v *Verdict, h *handlers.Handler, place int) {
	if place >= len(h.Words.Filters) {
		v.Expected = fmt.Sprintf("filter %d", place+1)
		return
	}
	criterion := h.Words.Filters[place]
	if criterion.Path == nil {
		v.Expected, v.Found = criterion.Text, "false"
		return
	}
	found, _ := diff.Resolve(d.cause.Body(), criterion.Path)
	d.atField(v, criterion.Path, criterion.Text, found)
}

// atField says what is at the field, unless that is secret. What a registration demands of a secret is as secret.
func (d *Draft) atField(v *Verdict, field diff.Path, expected string, found any) {
	v.Field = field.String()
	if d.object.kind.hides(field) {
		v.Expected, v.Found = notShown, notShown
		return
	}
	v.Expected, v.Found = shortened(expected), short(found)
}

// short is a value in a few words.
func short(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return shortMapping(value)
	case []any:
		return fmt.Sprintf("a list of %d", len(value))
	case string:
		value = shortened(value)
		text, _ := json.Marshal(value) // a text has one
		return string(text)
	default:
		return shortened(fmt.Sprint(value))
	}
}

// shortMapping shows mappings of a few texts, as labels are.
func shortMapping(value map[string]any) string {
	size := 0
	for key, inner := range value {
		text, ok := inner.(string)
		if size += len(key) + len(text); !ok || size > longestValue {
			return fmt.Sprintf("a mapping of %d", len(value))
		}
	}
	text, _ := json.Marshal(value) // of texts
	return string(text)
}

func shortened(text string) string {
	if len(text) <= longestValue {
		return text
	}
	end := longestValue
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// changed are the paths of a diff, and how many more there are. Keys may be of any length.
func changed(all diff.Diff) (paths []string, more int) {
	for i, item := range all {
		if i == mostChanged {
			return paths, len(all) - mostChanged
		}
		paths = append(paths, shortened(item.Path.String()))
	}
	return paths, 0
}
