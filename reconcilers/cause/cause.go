package cause

import (
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Reason is why an object is handled. Its text is the purpose persisted in the progress records.
type Reason string

// The reasons, as in Kopf. The first four have handlers, the rest are informational.
const (
	// Create: the object was never handled to the end.
	Create Reason = "create"
	// Update: the essence differs from the last-handled one.
	Update Reason = "update"
	// Delete: the object is being deleted, and our finalizer holds it.
	Delete Reason = "delete"
	// Resume: nothing changed, and the object was there when the operator started.
	Resume Reason = "resume"
	// Noop: nothing changed.
	Noop Reason = "noop"
	// Free: the object is being deleted, and we do not hold it.
	Free Reason = "free"
	// Gone: the object is no more.
	Gone Reason = "gone"
)

// Cause is what happened to one object, as its handlers see it.
type Cause struct {
	// Reason is why the object is handled.
	Reason Reason
	// Initial is true while the object, met in the first listing, was not yet handled to the end in this process.
	Initial bool
	// Type is that of the raw event, for handlers of events: empty in a listing, or ADDED, MODIFIED, DELETED.
	Type string
	// Deleting is true if the object has a deletion timestamp; Held, if it has our finalizer; Gone, if it is no more.
	Deleting, Held, Gone bool
	// Handled is true if the object was handled to the end before: there is a last-handled essence. Changed is true if
	// the present one differs from it.
	Handled, Changed bool
	// Body is the raw object. It is shared: nobody modifies it.
	Body map[string]any
	// Old is the last-handled essence; nil if the object was never handled.
	Old diffbase.Essence
	// New is the essence of Body.
	New diffbase.Essence
	// Diff leads from Old to New. The diff of an object never handled is one addition of the whole. Veiled values are
	// not in it: there, nil is a value that is not shown.
	Diff diff.Diff
	// Veiled are the paths under which Old may be Hidden, and no values are shown of how it differs from New.
	Veiled []diff.Path
}

// Observation is all that the decision needs.
type Observation struct {
	// Body is the raw object; with Gone, its last known state.
	Body map[string]any
	// Gone is true if the object does not exist any more.
	Gone bool
	// Finalizer is the name of our own finalizer.
	Finalizer string
	// Old and New are the essences: the last-handled one (nil if never), and that of Body.
	Old, New diffbase.Essence
	// Veiled are the paths under which no values are shown of how they differ.
	Veiled []diff.Path
	// Initial is true if the object was met in the first listing and not yet handled to the end.
	Initial bool
}

// Lens reads the two essences of an object: the remembered and the present one.
// Both are freed of the progress keys, so that a foreign version of an essence causes no endless updates.
type Lens struct {
	// Diffbase stores the last-handled essences.
	Diffbase diffbase.Storage
	// Progress stores the records whose keys are no part of an essence.
	Progress progress.Reader
	// Extra are the paths that are part of the essence because handlers look at them, such as status fields.
	Extra []diff.Path
	// Redaction says what is remembered by digests alone.
	Redaction Redaction
}

// Handled tells whether handlers are called for the reason.
func (r Reason) Handled() bool {
	return r == Create || r == Update || r == Delete || r == Resume
}

// Detect compares the object with what is remembered of it, and decides on the cause. A creation is never initial: a
// new object is not resumed.
func Detect(o Observation) *Cause {
	c := &Cause{
		Body: o.Body, Old: o.Old, New: o.New, Veiled: o.Veiled, Initial: o.Initial,
		Gone: o.Gone, Deleting: isDeleting(o.Body), Held: hasFinalizer(o.Body, o.Finalizer), Handled: o.Old != nil,
	}
	c.Diff = diff.Compute(asValue(o.Old), asValue(o.New))
	if len(o.Veiled) > 0 {
		c.Diff = Veil(c.Diff, nil, o.Veiled)
	}
	c.Changed = len(c.Diff) > 0
	c.Initial = o.Initial && !c.Created()
	c.Reason = c.reason()
	return c
}

// reason is the first one that fits.
func (c *Cause) reason() Reason {
	switch {
	case c.Gone:
		return Gone
	case c.Deleted():
		return Delete
	case c.Deleting:
		return Free
	case c.Created():
		return Create
	case c.Updated():
		return Update
	case c.Resumed(false):
		return Resume
	default:
		return Noop
	}
}

// Created tells whether the object was never handled to the end.
func (c *Cause) Created() bool { return !c.Gone && !c.Deleting && !c.Handled }

// Updated tells whether the object differs from what was handled last.
func (c *Cause) Updated() bool { return !c.Gone && !c.Deleting && c.Handled && c.Changed }

// Deleted tells whether the object is being deleted, and waits for us.
func (c *Cause) Deleted() bool { return !c.Gone && c.Deleting && c.Held }

// Resumed tells whether this process meets the object for the first time, whatever else has happened to it. An object
// that is being deleted is resumed only by those who say so.
func (c *Cause) Resumed(evenIfDeleted bool) bool { return c.Initial && (evenIfDeleted || !c.Deleting) }

// asValue keeps a nil essence a nil value: a nil map in an interface would be an object.
func asValue(e diffbase.Essence) any {
	if e == nil {
		return nil
	}
	return e
}

func isDeleting(body map[string]any) bool {
	v, _ := diff.Resolve(body, diff.Path{"metadata", "deletionTimestamp"})
	return v != nil
}

func hasFinalizer(body map[string]any, name string) bool {
	v, _ := diff.Resolve(body, diff.Path{"metadata", "finalizers"})
	list, _ := v.([]any)
	for _, item := range list {
		if item == name {
			return true
		}
	}
	return false
}

// New builds the essence of the present object. An extra field that leads through something else than a mapping is one
// that the object does not have, whatever its handlers want: Kopf does not handle such an object at all.
func (l *Lens) New(body map[string]any) (diffbase.Essence, error) {
	essence, err := l.Diffbase.Build(body, l.reachable(body))
	if err != nil {
		return nil, fmt.Errorf("building the essence: %w", err)
	}
	return l.cleared(essence)
}

// reachable are the extra fields without those that the storages take for errors.
func (l *Lens) reachable(body map[string]any) []diff.Path {
	blocked := func(field diff.Path) bool { _, found := obstacle(body, field); return found }
	if !slices.ContainsFunc(l.Extra, blocked) {
		return l.Extra
	}
	return slices.DeleteFunc(slices.Clone(l.Extra), blocked)
}

// Unreachable are the extra fields that lead through a list or a scalar, each once. What leads through a null is as
// good as absent.
func (l *Lens) Unreachable(body map[string]any) (fields []diff.Path) {
	for _, field := range l.Extra {
		value, found := obstacle(body, field)
		known := func(other diff.Path) bool { return slices.Equal(other, field) }
		if found && value != nil && !slices.ContainsFunc(fields, known) {
			fields = append(fields, field)
		}
	}
	return fields
}

// obstacle is what a field leads through that is no mapping, if there is such a thing.
func obstacle(body map[string]any, field diff.Path) (value any, found bool) {
	value = body
	for _, key := range field {
		mapping, ok := value.(map[string]any)
		if !ok {
			return value, true
		}
		if value, ok = mapping[key]; !ok {
			return nil, false
		}
	}
	return nil, false
}

// Old fetches the last-handled essence from a storage: that of the lens, or another one of the same form.
// It is nil if the object was never handled.
func (l *Lens) Old(body map[string]any, from diffbase.Storage) (diffbase.Essence, error) {
	essence, err := from.Fetch(body)
	if err != nil {
		return nil, fmt.Errorf("reading what was handled last: %w", err)
	}
	if essence == nil {
		return nil, nil
	}
	return l.cleared(essence)
}

// cleared is the essence without progress. A storage that panics must not take anything else with it.
func (l *Lens) cleared(essence diffbase.Essence) (cleared diffbase.Essence, err error) {
	err = panics.Contain(func() error { cleared = l.Progress.Clear(essence); return nil })
	if err != nil {
		return nil, fmt.Errorf("clearing the essence of progress: %w", err)
	}
	return cleared, nil
}
