package changes

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// InterimStorage stores the essence that the first successful handler of a cause saw, until the cause ends (deviation
// D-handling-config). It stays longer if not all handlers have seen the last-handled configuration. Kopf ignores the
// annotation as one of its own, and ends causes without removing it. Therefore the essence is stored with a
// precondition, under which it is valid.
type InterimStorage struct{ diffbase.Annotations }

// preconditionKey is the key of the precondition in the stored essence. Kubernetes objects do not have such a field.
const preconditionKey = "$beside"

// unknownFingerprint differs from all fingerprints.
const unknownFingerprint = "?"

// precondition is the state of the object under which an interim essence is valid. If another operator ends the cause
// or begins a new one, the precondition does not hold any more.
type precondition struct {
	handledFingerprint string // fingerprint of the last-handled configuration; empty if there is none
	// the success that the essence belongs to; nil if no cause is open, and the handlers have seen different essences
	success *success
}

// success identifies the record of a succeeded handler by its id and its end; or a record that lists a succeeded
// sub-handler, by its id and its start.
type success struct{ id, stopped, since string }

// recordNames are the keys of the records that were read. Ids with different spellings can have the same key: each
// record is read once.
type recordNames map[string]bool

// NewInterimStorage returns an Interim that uses the annotation prefix of the operator. Bound is the same as in the
// storages.
func NewInterimStorage(prefix, bound string) InterimStorage {
	return InterimStorage{diffbase.Annotations{Prefix: prefix, Key: keys.Handling, WithoutV1: true, Bound: bound}}
}

// annotationKeys returns the keys of the annotations in which the essence can be stored.
func (i InterimStorage) annotationKeys(body map[string]any) []string {
	return keys.AnnotationKeysOn(body, i.Prefix, i.Bound, i.Key, false)
}

// storeUnder adds the essence with its precondition to the merge-patch.
func (i InterimStorage) storeUnder(patch, body map[string]any, essence diffbase.Essence, valid precondition) error {
	bound := maps.Clone(essence) // the caller's essence must not get the key
	bound[preconditionKey] = valid.storedForm()
	return i.Store(patch, body, bound)
}

// readWithPrecondition returns the essence and its precondition; nil if the essence was stored without one.
func (i InterimStorage) readWithPrecondition(
	body map[string]any,
) (essence diffbase.Essence, valid *precondition, err error) {
	essence, err = i.Fetch(body)
	if stored, bound := essence[preconditionKey]; err == nil && bound {
		valid = parsePrecondition(stored)
	}
	// Callers compare the rest as an ordinary essence.
	delete(essence, preconditionKey)
	return essence, valid, err
}

// PurgeEssence adds the removal of the essence to the merge-patch, if the object has it.
func (i InterimStorage) PurgeEssence(patch *patching.Patch, body map[string]any) {
	annotations := annotationsOf(body)
	for _, key := range i.annotationKeys(body) {
		if annotations[key] != nil {
			patch.SetIn([]string{"metadata", "annotations", key}, nil)
		}
	}
}

// storedForm returns the stored form of the precondition.
func (c precondition) storedForm() map[string]any {
	value := map[string]any{"handled": c.handledFingerprint}
	if c.success != nil {
		value["success"], value["stopped"] = c.success.id, c.success.stopped
		if c.success.since != "" {
			value["since"] = c.success.since
		}
	}
	return value
}

// parsePrecondition returns a precondition that never holds if the stored value is malformed.
func parsePrecondition(stored any) *precondition {
	value, _ := stored.(map[string]any)
	handled, ok := value["handled"].(string)
	if !ok {
		handled = unknownFingerprint
	}
	c := &precondition{handledFingerprint: handled}
	if id, ok := value["success"].(string); ok {
		stopped, _ := value["stopped"].(string)
		since, _ := value["since"].(string)
		c.success = &success{id, stopped, since}
	}
	return c
}

// isMet reports whether the precondition is met, by the stored configuration and the records that read returns. Earlier
// versions stored interim essences without a precondition: for these, any success is enough.
func (c *precondition) isMet(
	seen *observation, read func(id string) (*progress.Record, error),
) (bool, error) {
	if c == nil {
		found, err := findSuccess(seen.state, read)
		return found != nil, err
	}
	// Another last-handled configuration means that the cause was ended.
	handled, err := cause.EssenceFingerprint(seen.lastHandled)
	switch {
	case err != nil || handled != c.handledFingerprint:
		return false, err
	case c.success == nil:
		return true, nil
	}
	// The same success must still be recorded: a new one can belong to another cause.
	record, err := read(c.success.id)
	if err != nil {
		return false, err
	}
	found := successIn(c.success.id, record)
	return found != nil && *found == *c.success, nil
}

// dropStaleInterim ignores an interim essence that does not belong to the open cause.
func (s *observation) dropStaleInterim(beside *precondition) error {
	if s.interimEssence == nil {
		return nil
	}
	valid, err := beside.isMet(s, s.state.FetchRecord)
	if err == nil && !valid {
		s.interimEssence, s.hasStaleInterim = nil, true
	}
	return err
}

// successIn returns the success that a record has; nil if there is none.
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
	// The record is of a handler whose sub-handler succeeded. Its start identifies the cause.
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

// findSuccess returns a success with the purpose of the state, or any success if the state does not have a purpose. It
// also searches the records of sub-handlers: their states are unknown until the parent is called.
func findSuccess(state *execution.State, read func(id string) (*progress.Record, error)) (*success, error) {
	met := recordNames{}
	for _, h := range state.AllStates() {
		if !h.NeedsRecord() {
			continue // the record of its handler names it
		}
		record := h.AsRecord()
		if found := successIn(h.ID, &record); found != nil && hasPurposeOf(state, h.Purpose) {
			return found, nil
		}
		for _, id := range h.Subrefs {
			if state.StateOf(id) != nil || !met.addIfNew(id) {
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

// hasPurposeOf reports whether a record of this purpose belongs to the state. An empty purpose belongs to any.
func hasPurposeOf(state *execution.State, purpose string) bool {
	return purpose == "" || state.Purpose == "" || purpose == state.Purpose
}

// addIfNew reports whether the record of this id was not read yet.
func (r recordNames) addIfNew(id string) bool {
	name := keys.CurrentKey("", id)
	met := r[name]
	r[name] = true
	return !met
}
