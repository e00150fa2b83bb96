package changes

import (
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const (
	// objectLimit is the size in bytes of JSON up to which an object can grow by records outside of annotations: the
	// API server stores 1.5 MiB by default. The records get half of the remaining room, as the server also stores the
	// owner of each of their fields. minOtherFieldsRoom is the minimum, also for objects that are larger already: as
	// long as the server accepts them, they can have some records.
	objectLimit, minOtherFieldsRoom = 1400 * 1024, 32 * 1024
	// headroom is left free for small additions: the binding of the memory to the object, the digest of the interim
	// essence, and the growth of records by some bytes with each attempt.
	headroom = 4096
)

// size is a number of bytes on an object: in annotations, and elsewhere.
type size struct{ annotations, otherFields int }

// addMultiple returns the sum with n times the other size; n can be negative.
func (s size) addMultiple(n int, other size) size {
	return size{s.annotations + n*other.annotations, s.otherFields + n*other.otherFields}
}

// budget is the room on an object for the progress of sub-handlers. A sub-handler is only called if its outcome fits.
// A limit for the present size would not be enough: sub-handlers that wait for others get their records later, and
// then the object could be too large for every further write. Before the first call, it would also not show how
// many sub-handlers fit.
type budget struct {
	handling *ChangeHandling
	object   *object
	state    *execution.State

	remaining          size            // the room that is not reserved
	reserved           map[string]size // by sub-handlers that are unfinished, or were at the last measurement
	running            map[string]bool // sub-handlers that are being called: any outcome must fit
	copiesPerRecord    size            // the number of places in which the storage keeps a record
	hasNewReservations bool            // there were reservations since the last measurement
}

// measureBudget measures the room for sub-handlers. The budget of a runner is kept between the measurements, as the
// running sub-handlers are recorded in it.
func (r *runner) measureBudget() error {
	if r.budget == nil {
		r.budget = &budget{
			handling: r.pass.handling, object: &r.pass.object, state: r.outcomes.state, running: map[string]bool{},
		}
	}
	return r.budget.measureRoom()
}

// measureRoom computes the room that is left after the records to be written now, and after a success of all
// sub-handlers that are due.
func (b *budget) measureRoom() error {
	b.remaining, b.reserved, b.copiesPerRecord, b.hasNewReservations = size{}, map[string]size{}, size{}, false
	if err := b.countCopies(); err != nil {
		return err
	}
	// The unwritten records count, too. Without places on the object, a trial would write to an external storage.
	patch, body := map[string]any{}, b.object.body
	if b.copiesPerRecord != (size{}) {
		if err := b.state.StoreChanged(b.handling.Progress, patch, body); err != nil {
			return err
		}
	}
	// An interim essence can shrink to a digest, so its present size is available to records.
	used := storage.AnnotationsSize(annotationsOf(body), annotationsOf(patch))
	b.remaining.annotations = storage.AnnotationsLimit - used + b.interimSize() - headroom
	if b.copiesPerRecord.otherFields > 0 {
		rest, err := b.roomOutsideAnnotations()
		if err != nil {
			return err
		}
		b.remaining.otherFields = rest
	}
	return b.reserveForUnfinished()
}

// countCopies counts the places in which the storage keeps a record, by storing a trial record in an empty patch.
func (b *budget) countCopies() error {
	patch := map[string]any{}
	if err := storages.ProbeProgress(patch, b.handling.Progress, "a"); err != nil {
		return fmt.Errorf("asking the storage of progress for its places: %w", err)
	}
	for place, value := range storage.PatchLeaves(patch) {
		switch {
		case !strings.HasPrefix(place, "/metadata/annotations/"):
			b.copiesPerRecord.otherFields = 1
		// The marker annotation is written once for all records.
		case value != keys.ManagedValue:
			b.copiesPerRecord.annotations++
		}
	}
	return nil
}

// roomOutsideAnnotations returns the room outside of annotations.
func (b *budget) roomOutsideAnnotations() (int, error) {
	text, err := asciijson.Marshal(b.object.body)
	if err != nil {
		return 0, fmt.Errorf("measuring the object: %w", err)
	}
	// The stored records are subtracted from the object, as all records count separately.
	others, records := len(text), 0
	for _, h := range b.state.AllStates() {
		if !h.IsSub() || !h.NeedsRecord() {
			continue
		}
		record, err := b.sizeOf(h)
		if err != nil {
			return 0, err
		}
		records += record.otherFields
		if h.IsStored() {
			others -= record.otherFields
		}
	}
	// The server stores the owner of each field, so records get half of the room.
	return max(minOtherFieldsRoom, (objectLimit-others)/2) - records, nil
}

// reserveForUnfinished reserves the room that the unfinished sub-handlers still need.
func (b *budget) reserveForUnfinished() error {
	for _, h := range b.state.AllStates() {
		// A postponed sub-handler gets its reservation in [subHandlers.reserveForNew].
		if !h.IsSub() || h.IsFinished() || h.Postponed && !h.NeedsRecord() {
			continue
		}
		counted, err := b.sizeOf(h)
		if err != nil {
			return err
		}
		wanted, err := b.expectedSize(h)
		if err != nil {
			return err
		}
		b.reserved[h.ID] = counted
		b.setReservation(h.ID, wanted)
	}
	b.hasNewReservations = false // these reservations belong to the measurement
	return nil
}

// interimSize returns the number of bytes of the interim essence on the object.
func (b *budget) interimSize() (bytes int) {
	for _, key := range b.handling.InterimStorage.annotationKeys(b.object.body) {
		text, _ := annotationsOf(b.object.body)[key].(string)
		bytes += len(text)
	}
	return bytes
}

// setReservation replaces the reservation of a sub-handler.
func (b *budget) setReservation(id string, s size) {
	b.remaining = b.remaining.addMultiple(1, b.reserved[id]).addMultiple(-1, s)
	b.reserved[id], b.hasNewReservations = s, true
}

// canReserve reports whether the reservation of a sub-handler could be replaced by this one.
func (b *budget) canReserve(id string, s size) bool {
	left := b.remaining.addMultiple(1, b.reserved[id]).addMultiple(-1, s)
	return left.annotations >= 0 && left.otherFields >= 0
}

// sizeOf returns the present size of a sub-handler's progress: a record, a name in the record of its parent, or
// nothing.
func (b *budget) sizeOf(h *execution.HandlerState) (size, error) {
	switch {
	case h.NeedsRecord():
		return b.recordSize(h, h.AsRecord())
	case h.IsFinished():
		return b.nameSize(h), nil
	default:
		return size{}, nil
	}
}

// expectedSize returns the size to reserve for an unfinished sub-handler. While it is called, that is the largest
// outcome. Before, it is the size after a success, or the present size if that is larger.
func (b *budget) expectedSize(h *execution.HandlerState) (size, error) {
	if b.running[h.ID] {
		return b.largestSize(h)
	}
	ready := *h
	ready.Waiting = false // before its call it gets a record, if it needs one
	now, err := b.sizeOf(&ready)
	if err != nil || h.HasProgress() {
		return now, err
	}
	then := b.nameSize(h)
	// Without compact records, a success leaves a record, too.
	if !b.handling.CompactSubs {
		record, at := h.AsRecord(), b.handling.Now()
		record.Stopped, record.Delayed, record.Message = &at, nil, nil
		if then, err = b.recordSize(h, record); err != nil {
			return size{}, err
		}
	}
	return size{max(now.annotations, then.annotations), max(now.otherFields, then.otherFields)}, nil
}

// largestSize returns the size of the record if the next attempt fails with the longest error.
func (b *budget) largestSize(h *execution.HandlerState) (size, error) {
	return b.recordSize(h, h.LargestRecord(b.handling.Now()))
}

// nameSize returns the size of the name of a succeeded sub-handler in the record of its parent.
func (b *budget) nameSize(h *execution.HandlerState) size {
	bytes, _, _ := h.ReferenceSizes()
	return size{}.addMultiple(bytes, b.copiesPerRecord)
}

// recordSize returns the size of a record, and of its references in the records of the ancestors.
func (b *budget) recordSize(h *execution.HandlerState, record progress.Record) (size, error) {
	if b.copiesPerRecord == (size{}) {
		return size{}, nil // records are stored elsewhere: a trial would be stored there
	}
	patch := map[string]any{}
	if err := b.handling.Progress.Store(patch, b.object.body, h.ID, record); err != nil {
		return size{}, fmt.Errorf("storing the progress of sub-handler %q: %w", h.ID, err)
	}
	_, levels, each := h.ReferenceSizes()
	return sizeOfPatch(patch).addMultiple(levels*each, b.copiesPerRecord), nil
}

// sizeOfPatch returns the number of bytes that a patch writes to an object.
func sizeOfPatch(patch map[string]any) (s size) {
	for key, value := range annotationsOf(patch) {
		// The patch of each record includes the marker, but the object has it once.
		if text, _ := value.(string); text != keys.ManagedValue {
			s.annotations += len(key) + len(text)
		}
	}
	for key, value := range patch {
		if key == "metadata" {
			continue
		}
		// Errors are ignored here: a value without a JSON form is refused by the write.
		text, _ := asciijson.Marshal(value)
		s.otherFields += len(text)
	}
	return s
}
