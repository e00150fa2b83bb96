package cause

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Reason is why an object is handled. Its text is stored as the purpose of progress records, so it must equal Kopf's.
type Reason string

// The reasons, as in Kopf. The first four have handlers; the others are informational.
const (
	// Create: the object was never handled completely.
	Create Reason = "create"
	// Update: the essence differs from the last-handled one.
	Update Reason = "update"
	// Delete: the object is being deleted, and has our finalizer.
	Delete Reason = "delete"
	// Resume: nothing has changed, and the object existed when the operator started.
	Resume Reason = "resume"
	// Noop: nothing has changed.
	Noop Reason = "noop"
	// Free: the object is being deleted, and does not have our finalizer.
	Free Reason = "free"
	// Gone: the object does not exist any more.
	Gone Reason = "gone"
)

// Cause is the state of one object in relation to its last-handled state, as its handlers see it.
type Cause struct {
	// Reason is why the object is handled: the first one that applies, see Detect.
	Reason Reason
	// Initial is true for an object of the first listing until this process has handled it completely.
	Initial bool
	// EventType is the type of the raw event, for event handlers: empty in a listing, or ADDED, MODIFIED, DELETED.
	EventType string
	// Deleting is true if the object has a deletion timestamp. Held is true if it has our finalizer. Gone is true if it
	// does not exist any more.
	Deleting, HasFinalizer, Gone bool
	// Paused is true if an annotation pauses the object: no handler is called. It is never true for a deletion that is
	// handled nevertheless.
	Paused bool
	// Handled is true if the object was handled completely before: there is a last-handled essence. Changed is true if
	// the present essence differs from it.
	Handled, Changed bool
	// Object is the raw object, which may not be decoded yet; see Body.
	Object *jsontext.LazyObject
	// Old is the last-handled essence; nil if the object was never handled.
	Old diffbase.Essence
	// New is the essence of Body.
	New diffbase.Essence
	// Diff leads from Old to New. For an object that was never handled, it is one addition of the whole essence. The
	// values under Veiled are replaced by nil.
	Diff diff.Diff
	// VeiledPaths are the paths whose values Diff does not show. Old may have Hidden values under them.
	VeiledPaths []diff.Path
}

// Observation is the input of Detect.
type Observation struct {
	// Body is the raw object; if Gone is true, its last known state.
	Body map[string]any
	// Object is Body together with its text; nil if only Body is known.
	Object *jsontext.LazyObject
	// Gone is true if the object does not exist any more.
	Gone bool
	// Finalizer is the name of the operator's finalizer.
	Finalizer string
	// Old and New are the essences: the last-handled one (nil if never handled), and that of Body.
	Old, New diffbase.Essence
	// VeiledPaths are the paths whose values Diff must not show.
	VeiledPaths []diff.Path
	// Initial is true if the object was in the first listing and is not handled completely yet.
	Initial bool
}

// Lens reads the two essences of an object: the last-handled one and the present one. It removes the keys of progress
// records from both. Otherwise, if another version of the operator had stored an essence with these keys, each pass
// would detect an update.
type Lens struct {
	// Diffbase stores the last-handled essences.
	Diffbase diffbase.Storage
	// Progress stores the records whose keys do not belong to an essence.
	Progress progress.Reader
	// Prefix is that of the annotations that control the handling, which do not belong to an essence either. Other
	// annotations of the prefix are removed by the storages.
	Prefix string
	// ExtraPaths are the paths that belong to the essence because handlers name them as fields, such as fields of the
	// status.
	ExtraPaths []diff.Path
	// Redaction selects the values that are stored as digests.
	Redaction Redaction
	// Hide returns an object or an essence without the parts of the status that the engine writes itself, such as
	// conditions. Nil returns it unchanged.
	Hide func(body map[string]any) map[string]any
}

// Detect compares the object with its last-handled essence and determines the cause. The cause of a creation is never
// initial, because a new object is not resumed.
func Detect(o Observation) *Cause {
	c := &Cause{
		Object: cmp.Or(o.Object, jsontext.NewFromValue(o.Body)), Old: o.Old, New: o.New, VeiledPaths: o.VeiledPaths,
		Initial: o.Initial,
		Gone:    o.Gone, Deleting: isDeleting(o.Body), HasFinalizer: hasFinalizer(o.Body, o.Finalizer),
		Handled: o.Old != nil,
	}
	// Usually nothing has changed: one pointer comparison replaces the diff of two equal essences.
	if !isSame(o.Old, o.New) {
		c.Diff = diff.Compute(EssenceValue(o.Old), EssenceValue(o.New))
	}
	if len(o.VeiledPaths) > 0 {
		c.Diff = VeilDiff(c.Diff, nil, o.VeiledPaths)
	}
	c.Changed = len(c.Diff) > 0
	// This depends on Gone, Deleting and Handled, which are set above.
	c.Initial = o.Initial && !c.IsCreated()
	c.Reason = c.firstReason()
	return c
}

// Body returns the raw object. It is shared: callers must not modify it. It panics if the object cannot be decoded; the
// callers of handlers and filters recover from that as from any other panic.
func (c *Cause) Body() map[string]any {
	body, err := c.Object.Value()
	if err != nil {
		panic(err)
	}
	return body
}

// firstReason returns the first reason that applies.
func (c *Cause) firstReason() Reason {
	switch {
	// The order matters: the conditions overlap, and deletions hide all other reasons.
	case c.Gone:
		return Gone
	case c.IsDeleted():
		return Delete
	case c.Deleting:
		return Free
	case c.IsCreated():
		return Create
	case c.IsUpdated():
		return Update
	case c.IsResumed(false):
		return Resume
	default:
		return Noop
	}
}

// IsCreated reports whether the object was never handled completely.
func (c *Cause) IsCreated() bool { return !c.Gone && !c.Deleting && !c.Handled }

// IsUpdated reports whether the object differs from its last-handled state.
func (c *Cause) IsUpdated() bool { return !c.Gone && !c.Deleting && c.Handled && c.Changed }

// IsDeleted reports whether the object is being deleted and our finalizer holds it.
func (c *Cause) IsDeleted() bool { return !c.Gone && c.Deleting && c.HasFinalizer }

// IsResumed reports whether this process has not handled an object of the first listing yet, even if the object has
// changed meanwhile. An object that is being deleted counts only if evenIfDeleted is true.
func (c *Cause) IsResumed(evenIfDeleted bool) bool {
	return c.Initial && (evenIfDeleted || !c.Deleting)
}

// EssenceValue converts an essence for a diff. A nil map in an interface would be an empty object, so nil stays nil.
func EssenceValue(e diffbase.Essence) any {
	if e == nil {
		return nil
	}
	return e
}

// EqualEssences reports whether there is no difference between the essences. A nil one only equals nil.
func EqualEssences(a, b diffbase.Essence) bool { return diff.Equal(EssenceValue(a), EssenceValue(b)) }

// isDeleting reports whether the object has a deletion timestamp.
func isDeleting(body map[string]any) bool {
	v, _ := diff.ResolvePath(body, diff.Path{"metadata", "deletionTimestamp"})
	return v != nil
}

// hasFinalizer reports whether the object has the finalizer.
func hasFinalizer(body map[string]any, name string) bool {
	v, _ := diff.ResolvePath(body, diff.Path{"metadata", "finalizers"})
	list, _ := v.([]any)
	return slices.Contains(list, any(name))
}

// New builds the essence of the present object. It omits extra fields whose path leads through a list or a scalar; Kopf
// fails for such objects.
func (l *Lens) New(body map[string]any) (diffbase.Essence, error) {
	if l.Hide != nil {
		body = l.Hide(body)
	}
	essence, err := l.Diffbase.Build(body, l.reachableFields(body))
	if err != nil {
		return nil, fmt.Errorf("building the essence: %w", err)
	}
	return l.withoutProgress(essence)
}

// reachableFields returns the extra fields whose path leads through mappings only. Storages return errors for other
// fields.
func (l *Lens) reachableFields(body map[string]any) []diff.Path {
	blocked := func(field diff.Path) bool { _, found := findObstacle(body, field); return found }
	// Usually all are reachable: avoid the copy.
	if !slices.ContainsFunc(l.ExtraPaths, blocked) {
		return l.ExtraPaths
	}
	return slices.DeleteFunc(slices.Clone(l.ExtraPaths), blocked)
}

// UnreachableFields returns the extra fields whose path leads through a list or a scalar, each once. A field below a
// null counts as absent, not as unreachable.
func (l *Lens) UnreachableFields(body map[string]any) (fields []diff.Path) {
	for _, field := range l.ExtraPaths {
		value, found := findObstacle(body, field)
		known := func(other diff.Path) bool { return slices.Equal(other, field) }
		if found && value != nil && !slices.ContainsFunc(fields, known) {
			fields = append(fields, field)
		}
	}
	return fields
}

// findObstacle returns the first value on the path to a field that is not a mapping. found is false if there is none.
func findObstacle(body map[string]any, field diff.Path) (value any, found bool) {
	// The field itself need not exist: an absent one is reachable.
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

// ComparableEssence converts the result of a storage's Fetch into the form in which essences are compared. It returns
// nil if the object was never handled.
func (l *Lens) ComparableEssence(essence diffbase.Essence, err error) (diffbase.Essence, error) {
	if err != nil {
		return nil, fmt.Errorf("reading the last-handled configuration: %w", err)
	}
	if essence == nil {
		return nil, nil
	}
	// An essence that an earlier version has stored may still contain the parts that Hide removes.
	if l.Hide != nil {
		essence = l.Hide(essence)
	}
	return l.withoutProgress(essence)
}

// Last reads the last-handled essence from the storage. Usually it equals the present essence. A storage that detects
// this does not decode the stored essence, and Last then returns the present essence itself.
func (l *Lens) Last(body map[string]any, present diffbase.Essence) (diffbase.Essence, error) {
	essence, err := diffbase.FetchLikely(l.Diffbase, body, present)
	if err == nil && isSame(essence, present) {
		return present, nil
	}
	return l.ComparableEssence(essence, err)
}

// isSame reports whether both are the same mapping in memory. It does not compare their contents.
func isSame(a, b diffbase.Essence) bool {
	return a != nil && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// withoutProgress returns the essence without progress records. A panic of the user's storage becomes an error.
func (l *Lens) withoutProgress(essence diffbase.Essence) (cleared diffbase.Essence, err error) {
	err = panics.Contain(func() error { cleared = l.Progress.Clear(essence); return nil })
	if err != nil {
		return nil, fmt.Errorf("clearing the essence of progress: %w", err)
	}
	return l.withoutControls(cleared), nil
}

// withoutControls returns the essence without the annotations that control the handling. It does not modify the
// essence, and returns it unchanged if there are none.
func (l *Lens) withoutControls(essence diffbase.Essence) diffbase.Essence {
	metadata, _ := essence["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		if !keys.IsControl(l.Prefix, key) {
			continue
		}
		// The path exists, so there is no error.
		essence, _ = storage.WithoutValue(essence, []string{"metadata", "annotations", key})
	}
	return essence
}

// hashSeed is random in each process, so that users cannot construct two essences with the same hash.
var hashSeed = maphash.MakeSeed()

// HashEssence identifies an essence within this process, and is never zero. Equal essences have equal hashes. It does
// not allocate, because it runs for every event. Hashes are never stored.
func HashEssence(essence diffbase.Essence) uint64 { return hashValue(essence) | 1 }

// hashValue hashes a JSON value. Each type has its own first operand, so that values of different types have different
// hashes.
func hashValue(value any) uint64 {
	switch value := value.(type) {
	case string:
		return mixHashes(1, maphash.String(hashSeed, value))
	case bool:
		return mixHashes(2, maphash.Comparable(hashSeed, value))
	case int64:
		return mixHashes(3, maphash.Comparable(hashSeed, value))
	case float64:
		// A whole number hashes like the integer: JSON decoders may return either.
		if value >= math.MinInt64 && value < -math.MinInt64 && math.Trunc(value) == value {
			return mixHashes(3, maphash.Comparable(hashSeed, int64(value)))
		}
		return mixHashes(4, maphash.Comparable(hashSeed, value))
	case []any:
		sum := uint64(5)
		for _, item := range value {
			sum = mixHashes(sum, hashValue(item))
		}
		return sum
	case map[string]any:
		sum := uint64(0) // the order of the keys has no meaning
		for key, inner := range value {
			if inner != nil { // a null means the same as an absent value
				sum += mixHashes(maphash.String(hashSeed, key), hashValue(inner))
			}
		}
		return mixHashes(6, sum)
	case Hidden:
		return mixHashes(7, maphash.String(hashSeed, value.digest))
	default:
		return 8
	}
}

// mixHashes combines two hashes; the order matters.
func mixHashes(a, b uint64) uint64 {
	sum := (a ^ b>>29) * 0x9e3779b97f4a7c15
	sum ^= sum>>32 ^ b
	return sum * 0xbf58476d1ce4e5b9
}
