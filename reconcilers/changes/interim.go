package changes

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Interim is where the essence that the first successful handler of a cause saw is kept until the cause ends. It stays
// beyond that as long as not all handlers have seen the one that is stored as last handled. Kopf does not know the
// annotation, and takes it for one of its own that is to be ignored: it ends causes without removing it. So the
// precondition under which the essence is valid is kept in it.
type Interim struct{ annotations diffbase.Annotations }

var _ diffbase.Storage = Interim{}

// preconditionKey stands in the interim essence, with its precondition. No object of Kubernetes has such a field.
const preconditionKey = "$beside"

// unknownFingerprint is no fingerprint of anything.
const unknownFingerprint = "?"

// precondition is what an interim essence is valid beside: once another operator has ended the cause, or has begun one
// of its own, it is not.
type precondition struct {
	handled string // the fingerprint of the configuration handled last; empty if there was none
	// what the essence is of; nil if no cause is open, and some handlers have seen the one essence, some the other
	success *success
}

// success is the record of a handler that succeeded; or one that names a sub-handler that did, and since when there is
// that record.
type success struct{ id, stopped, since string }

// recordNames are those of the records that were read. One that is listed in a thousand spellings is read once.
type recordNames map[string]bool

// NewInterim keeps it under the operator's annotation prefix. Bound is that of the storages in annotations.
func NewInterim(prefix, bound string) Interim {
	return Interim{diffbase.Annotations{Prefix: prefix, Key: keys.Handling, WithoutV1: true, Bound: bound}}
}

func (i Interim) keys(body map[string]any) []string {
	return keys.Names(i.annotations.Prefix, keys.MarkBound(body, i.annotations.Bound, i.annotations.Key), false)
}

// Build makes the essence of the object, as the storage of last-handled configurations in annotations does.
func (i Interim) Build(body map[string]any, extra []diff.Path) (diffbase.Essence, error) {
	return i.annotations.Build(body, extra)
}

// Store adds the essence to the merge-patch.
func (i Interim) Store(patch, body map[string]any, essence diffbase.Essence) error {
	return i.annotations.Store(patch, body, essence)
}

// Fetch reads the essence alone.
func (i Interim) Fetch(body map[string]any) (diffbase.Essence, error) {
	essence, _, err := i.readWithPrecondition(body)
	return essence, err
}

// storeUnder adds the essence with its precondition to the merge-patch.
func (i Interim) storeUnder(patch, body map[string]any, essence diffbase.Essence, valid precondition) error {
	bound := maps.Clone(essence)
	bound[preconditionKey] = valid.value()
	return i.Store(patch, body, bound)
}

// readWithPrecondition returns the essence and its precondition; that is nil if the essence was stored without.
func (i Interim) readWithPrecondition(
	body map[string]any,
) (essence diffbase.Essence, valid *precondition, err error) {
	essence, err = i.annotations.Fetch(body)
	if stored, bound := essence[preconditionKey]; err == nil && bound {
		valid = parsePrecondition(stored)
	}
	delete(essence, preconditionKey)
	return essence, valid, err
}

// Purge adds its removal to the merge-patch, if the object has it.
func (i Interim) Purge(patch *patching.Patch, body map[string]any) {
	annotations := annotationsOf(body)
	for _, key := range i.keys(body) {
		if annotations[key] != nil {
			patch.SetIn([]string{"metadata", "annotations", key}, nil)
		}
	}
}

// value is the form to be persisted.
func (c precondition) value() map[string]any {
	value := map[string]any{"handled": c.handled}
	if c.success != nil {
		value["success"], value["stopped"] = c.success.id, c.success.stopped
		if c.success.since != "" {
			value["since"] = c.success.since
		}
	}
	return value
}

// parsePrecondition gives one that never holds if the stored value is none of ours.
func parsePrecondition(stored any) *precondition {
	value, _ := stored.(map[string]any)
	handled, ok := value["handled"].(string)
	if !ok {
		handled = unknownFingerprint
	}
	c := &precondition{handled: handled}
	if id, ok := value["success"].(string); ok {
		stopped, _ := value["stopped"].(string)
		since, _ := value["since"].(string)
		c.success = &success{id, stopped, since}
	}
	return c
}

// holds reports whether the object still has what the interim essence depends on, by its records as read. Without a
// precondition, as interim memory was stored once, any success will do.
func (c *precondition) holds(
	seen *observation, read func(id string) (*progress.Record, error),
) (bool, error) {
	if c == nil {
		found, err := findSuccess(seen.state, read)
		return found != nil, err
	}
	handled, err := cause.Fingerprint(seen.stored)
	switch {
	case err != nil || handled != c.handled:
		return false, err
	case c.success == nil:
		return true, nil
	}
	record, err := read(c.success.id)
	if err != nil {
		return false, err
	}
	found := successIn(c.success.id, record)
	return found != nil && *found == *c.success, nil
}

// dropStaleInterim ignores interim memory that is of another cause than what else is remembered.
func (s *observation) dropStaleInterim(beside *precondition) error {
	if s.interim == nil {
		return nil
	}
	valid, err := beside.holds(s, s.state.Fetch)
	if err == nil && !valid {
		s.interim, s.staleInterim = nil, true
	}
	return err
}

// successIn finds what a record has of any success.
func successIn(id string, record *progress.Record) *success {
	switch {
	case record == nil:
		return nil
	case record.Success != nil && *record.Success:
		found := &success{id: id}
		if record.Stopped != nil {
			found.stopped = progress.FormatTimestamp(record.Stopped.UTC())
		}
		return found
	case len(record.Succeeded) > 0:
		found := &success{id: id}
		if record.Started != nil {
			found.since = progress.FormatTimestamp(record.Started.UTC())
		}
		return found
	default:
		return nil
	}
}

// findSuccess finds one of a handler of the state's own purpose, or of any for a state without one; or that of a
// sub-handler of one: these are known by name only until their parent is called.
func findSuccess(state *execution.State, read func(id string) (*progress.Record, error)) (*success, error) {
	met := recordNames{}
	for _, h := range state.Handlers() {
		if !h.Recorded() {
			continue // the record of its handler names it
		}
		record := h.Record()
		if found := successIn(h.ID, &record); found != nil && hasPurposeOf(state, h.Purpose) {
			return found, nil
		}
		for _, id := range h.Subrefs {
			if state.Handler(id) != nil || !met.first(id) {
				continue // its state is known, or its record was read
			}
			record, err := read(id)
			if err != nil {
				return nil, err
			}
			found := successIn(id, record)
			if found != nil && (record.Purpose == nil || hasPurposeOf(state, *record.Purpose)) {
				return found, nil
			}
		}
	}
	return nil, nil
}

func hasPurposeOf(state *execution.State, purpose string) bool {
	return purpose == "" || state.Purpose == "" || purpose == state.Purpose
}

func (r recordNames) first(id string) bool {
	name := keys.V2("", id)
	met := r[name]
	r[name] = true
	return !met
}
