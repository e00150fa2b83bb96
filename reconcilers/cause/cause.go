package cause

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Reason is why an object is handled. Progress records store its text as their purpose.
type Reason string

// The reasons, as in Kopf. The first four have handlers, the rest are informational.
const (
	// Create: the object was never handled to the end.
	Create Reason = "create"
	// Update: the essence differs from the last-handled one.
	Update Reason = "update"
	// Delete: the object is being deleted, and has our finalizer.
	Delete Reason = "delete"
	// Resume: nothing changed, and the object was there when the operator started.
	Resume Reason = "resume"
	// Noop: nothing changed.
	Noop Reason = "noop"
	// Free: the object is being deleted, and does not have our finalizer.
	Free Reason = "free"
	// Gone: the object does not exist any more.
	Gone Reason = "gone"
)

// Cause is what happened to one object, as its handlers see it.
type Cause struct {
	// Reason is why the object is handled.
	Reason Reason
	// Initial is true for an object of the first listing until this process has handled it to the end.
	Initial bool
	// Type is the type of the raw event, for event handlers: empty in a listing, or ADDED, MODIFIED, DELETED.
	Type string
	// Deleting is true if the object has a deletion timestamp; Held, if it has our finalizer; Gone, if it does not
	// exist any more.
	Deleting, Held, Gone bool
	// Handled is true if the object was handled to the end before: there is a last-handled essence. Changed is true if
	// the present one differs from it.
	Handled, Changed bool
	// Object is the raw object, which may not be decoded yet; see Body.
	Object *jsontext.Object
	// Old is the last-handled essence; nil if the object was never handled.
	Old diffbase.Essence
	// New is the essence of Body.
	New diffbase.Essence
	// Diff leads from Old to New. The diff of an object never handled is one addition of the whole. It has nil in
	// place of the values under Veiled.
	Diff diff.Diff
	// Veiled are the paths whose values Diff does not show, and under which Old may have Hidden values.
	Veiled []diff.Path
}

// Observation is the input of Detect.
type Observation struct {
	// Body is the raw object; with Gone, its last known state.
	Body map[string]any
	// Object is Body with its text; nil if there is none.
	Object *jsontext.Object
	// Gone is true if the object does not exist any more.
	Gone bool
	// Finalizer is the name of our own finalizer.
	Finalizer string
	// Old and New are the essences: the last-handled one (nil if never), and that of Body.
	Old, New diffbase.Essence
	// Veiled are the paths whose values Diff must not show.
	Veiled []diff.Path
	// Initial is true if the object was met in the first listing and not yet handled to the end.
	Initial bool
}

// Lens reads the two essences of an object: the last-handled and the present one. It clears both of the keys of
// progress records, so that an essence stored by another version causes no endless updates.
type Lens struct {
	// Diffbase stores the last-handled essences.
	Diffbase diffbase.Storage
	// Progress stores the records whose keys are no part of an essence.
	Progress progress.Reader
	// Extra are the paths that belong to the essence because handlers have them as fields, such as status fields.
	Extra []diff.Path
	// Redaction says which values are stored as digests.
	Redaction Redaction
	// Hide gives an object, or an essence, without what the engine itself tells in its status; nil changes nothing.
	Hide func(body map[string]any) map[string]any
}

// Handled tells whether handlers are called for the reason.
func (r Reason) Handled() bool {
	return r == Create || r == Update || r == Delete || r == Resume
}

// Detect compares the object with its last-handled essence, and decides on the cause. A creation is never initial: a
// new object is not resumed.
func Detect(o Observation) *Cause {
	c := &Cause{
		Object: cmp.Or(o.Object, jsontext.Of(o.Body)), Old: o.Old, New: o.New, Veiled: o.Veiled, Initial: o.Initial,
		Gone: o.Gone, Deleting: isDeleting(o.Body), Held: hasFinalizer(o.Body, o.Finalizer), Handled: o.Old != nil,
	}
	if !isSame(o.Old, o.New) {
		c.Diff = diff.Compute(asValue(o.Old), asValue(o.New))
	}
	if len(o.Veiled) > 0 {
		c.Diff = Veil(c.Diff, nil, o.Veiled)
	}
	c.Changed = len(c.Diff) > 0
	c.Initial = o.Initial && !c.Created()
	c.Reason = c.reason()
	return c
}

// Body is the raw object. It is shared: callers must not modify it. It panics if the object cannot be decoded, which is
// one of the many things that can go wrong when a handler or a filter is called.
func (c *Cause) Body() map[string]any {
	body, err := c.Object.Value()
	if err != nil {
		panic(err)
	}
	return body
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

// Deleted tells whether the object is being deleted, and our finalizer holds it.
func (c *Cause) Deleted() bool { return !c.Gone && c.Deleting && c.Held }

// Resumed tells whether this process handles an object of the first listing for the first time, whatever else has
// happened to it. An object that is being deleted counts only if evenIfDeleted is true.
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

// New builds the essence of the present object. It leaves out extra fields whose path leads through a list or a
// scalar. Kopf does not handle such an object at all.
func (l *Lens) New(body map[string]any) (diffbase.Essence, error) {
	if l.Hide != nil {
		body = l.Hide(body)
	}
	essence, err := l.Diffbase.Build(body, l.reachable(body))
	if err != nil {
		return nil, fmt.Errorf("building the essence: %w", err)
	}
	return l.cleared(essence)
}

// reachable gives the extra fields whose path leads through mappings only: for others, the storages return errors.
func (l *Lens) reachable(body map[string]any) []diff.Path {
	blocked := func(field diff.Path) bool { _, found := obstacle(body, field); return found }
	if !slices.ContainsFunc(l.Extra, blocked) {
		return l.Extra
	}
	return slices.DeleteFunc(slices.Clone(l.Extra), blocked)
}

// Unreachable gives the extra fields whose path leads through a list or a scalar, each once. A field under a null
// counts as absent.
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

// obstacle gives the first value on the path to a field that is no mapping, if there is one.
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

// Read returns the result of a storage's Fetch in the form in which essences are compared: nil if the object was never
// handled.
func (l *Lens) Read(essence diffbase.Essence, err error) (diffbase.Essence, error) {
	if err != nil {
		return nil, fmt.Errorf("reading the last-handled configuration: %w", err)
	}
	if essence == nil {
		return nil, nil
	}
	if l.Hide != nil {
		essence = l.Hide(essence)
	}
	return l.cleared(essence)
}

// Last reads the last-handled essence from the lens's storage. Usually, that is the present essence: then it is not
// even read, if the storage can recognize it, and Last returns the present one itself.
func (l *Lens) Last(body map[string]any, present diffbase.Essence) (diffbase.Essence, error) {
	essence, err := diffbase.FetchLikely(l.Diffbase, body, present)
	if err == nil && isSame(essence, present) {
		return present, nil
	}
	return l.Read(essence, err)
}

// isSame tells whether they are one mapping.
func isSame(a, b diffbase.Essence) bool {
	return a != nil && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// cleared gives the essence without progress. A panic of the storage is an error.
func (l *Lens) cleared(essence diffbase.Essence) (cleared diffbase.Essence, err error) {
	err = panics.Contain(func() error { cleared = l.Progress.Clear(essence); return nil })
	if err != nil {
		return nil, fmt.Errorf("clearing the essence of progress: %w", err)
	}
	return cleared, nil
}

// hashSeed makes hashes unpredictable, so that nobody can choose two essences with the same one.
var hashSeed = maphash.MakeSeed()

// Hash identifies an essence within this process, and is never zero. It allocates nothing, and takes no part in what is
// stored.
func Hash(essence diffbase.Essence) uint64 { return hashOf(essence) | 1 }

func hashOf(value any) uint64 {
	switch value := value.(type) {
	case string:
		return mixed(1, maphash.String(hashSeed, value))
	case bool:
		return mixed(2, maphash.Comparable(hashSeed, value))
	case int64:
		return mixed(3, maphash.Comparable(hashSeed, value))
	case float64:
		if value >= math.MinInt64 && value < -math.MinInt64 && math.Trunc(value) == value {
			return mixed(3, maphash.Comparable(hashSeed, int64(value)))
		}
		return mixed(4, maphash.Comparable(hashSeed, value))
	case []any:
		sum := uint64(5)
		for _, item := range value {
			sum = mixed(sum, hashOf(item))
		}
		return sum
	case map[string]any:
		sum := uint64(0) // the order of the keys has no meaning
		for key, inner := range value {
			if inner != nil { // a null means the same as an absent value
				sum += mixed(maphash.String(hashSeed, key), hashOf(inner))
			}
		}
		return mixed(6, sum)
	case Hidden:
		return mixed(7, maphash.String(hashSeed, value.digest))
	default:
		return 8
	}
}

// mixed combines two hashes, in this order.
func mixed(a, b uint64) uint64 {
	sum := (a ^ b>>29) * 0x9e3779b97f4a7c15
	sum ^= sum>>32 ^ b
	return sum * 0xbf58476d1ce4e5b9
}
