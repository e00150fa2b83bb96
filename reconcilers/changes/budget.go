package changes

import (
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const (
	// objectLimit is how large an object may become by records that are not annotations, in bytes of JSON: the API
	// server stores 1.5 MiB by default. Of what is left of it, the records have a half: the server notes the owner of
	// each of their fields as well. leastRest is for objects that are larger already: as long as the server takes it,
	// they may have some.
	objectLimit, leastRest = 1400 * 1024, 32 * 1024
	// headroom is left free for the small things that go with records: whose they are, and a digest of what was seen;
	// and for records that grow by some bytes with each attempt.
	headroom = 4096
)

// size is what is kept on an object, in bytes: annotations, and the rest.
type size struct{ annotations, rest int }

func (s size) plus(n int, other size) size {
	return size{s.annotations + n*other.annotations, s.rest + n*other.rest}
}

// budget is what is left on an object for the progress of sub-handlers: none is called whose outcome could not be kept.
type budget struct {
	handling *Handling
	object   *object
	state    *execution.State

	left     size
	reserved map[string]size // for each sub-handler that is not finished, or was not at the last measurement
	running  map[string]bool // those that are being called: whatever comes of them has a place
	copies   size            // in how many places a record is kept
	changed  bool            // something was reserved since the last measurement
}

// measureBudget measures how much is left for sub-handlers.
func (r *runner) measureBudget() error {
	if r.budget == nil {
		r.budget = &budget{
			handling: r.pass.handling, object: &r.pass.object, state: r.outcomes.state, running: map[string]bool{},
		}
	}
	return r.budget.measure()
}

// measure finds out how much is left: with all that is to be written now, and a success of all that will be called.
func (b *budget) measure() error {
	b.left, b.reserved, b.copies, b.changed = size{}, map[string]size{}, size{}, false
	if err := b.countCopies(); err != nil {
		return err
	}
	patch, body := map[string]any{}, b.object.body
	if b.copies != (size{}) {
		if err := b.state.Store(b.handling.Progress, patch, body); err != nil {
			return err
		}
	}
	used := storage.AnnotationsSize(annotationsOf(body), annotationsOf(patch))
	b.left.annotations = storage.AnnotationsLimit - used + b.interimSize() - headroom
	if b.copies.rest > 0 {
		rest, err := b.restLeft()
		if err != nil {
			return err
		}
		b.left.rest = rest
	}
	return b.reserveForUnfinished()
}

// countCopies finds out in how many places the storage keeps a record.
func (b *budget) countCopies() error {
	patch := map[string]any{}
	if err := storages.ProbeProgress(patch, b.handling.Progress, "a"); err != nil {
		return fmt.Errorf("asking the storage of progress for its places: %w", err)
	}
	for place, value := range storage.Leaves(patch) {
		switch {
		case !strings.HasPrefix(place, "/metadata/annotations/"):
			b.copies.rest = 1
		case value != keys.ManagedValue:
			b.copies.annotations++
		}
	}
	return nil
}

// restLeft is how much room there is outside of annotations.
func (b *budget) restLeft() (int, error) {
	text, err := asciijson.Marshal(b.object.body)
	if err != nil {
		return 0, fmt.Errorf("measuring the object: %w", err)
	}
	others, records := len(text), 0
	for _, h := range b.state.Handlers() {
		if !h.Sub() || !h.Recorded() {
			continue
		}
		record, err := b.sizeOf(h)
		if err != nil {
			return 0, err
		}
		records += record.rest
		if h.Stored() {
			others -= record.rest
		}
	}
	return max(leastRest, (objectLimit-others)/2) - records, nil
}

// reserveForUnfinished reserves what is not written yet of the sub-handlers that are to be called.
func (b *budget) reserveForUnfinished() error {
	for _, h := range b.state.Handlers() {
		if !h.Sub() || h.Finished() || h.Postponed && !h.Recorded() {
			continue
		}
		counted, err := b.sizeOf(h)
		if err != nil {
			return err
		}
		wanted, err := b.expected(h)
		if err != nil {
			return err
		}
		b.reserved[h.ID] = counted
		b.reserve(h.ID, wanted)
	}
	b.changed = false
	return nil
}

// interimSize is what can be spared of what the first handler saw: a digest of it does.
func (b *budget) interimSize() (bytes int) {
	for _, key := range b.handling.Interim.keys(b.object.body) {
		text, _ := annotationsOf(b.object.body)[key].(string)
		bytes += len(text)
	}
	return bytes
}

// reserve sets so much apart for a sub-handler, in place of what it had.
func (b *budget) reserve(id string, s size) {
	b.left = b.left.plus(1, b.reserved[id]).plus(-1, s)
	b.reserved[id], b.changed = s, true
}

// fits tells whether a sub-handler could have so much.
func (b *budget) fits(id string, s size) bool {
	left := b.left.plus(1, b.reserved[id]).plus(-1, s)
	return left.annotations >= 0 && left.rest >= 0
}

// sizeOf is what a sub-handler takes on the object as it is.
func (b *budget) sizeOf(h *execution.HandlerState) (size, error) {
	switch {
	case h.Recorded():
		return b.recordSize(h, h.Record())
	case h.Finished():
		return b.naming(h), nil
	default:
		return size{}, nil
	}
}

// expected is what is to be reserved for one that is not finished: while it is called, for anything that may come of
// it; before, for a success, or for what there is now if that is more.
func (b *budget) expected(h *execution.HandlerState) (size, error) {
	if b.running[h.ID] {
		return b.most(h)
	}
	ready := *h
	ready.Waiting = false // it gets a record, if it needs one, before it is called
	now, err := b.sizeOf(&ready)
	if err != nil || h.Tried() {
		return now, err
	}
	then := b.naming(h)
	if !b.handling.CompactSubs {
		record, at := h.Record(), b.handling.Now()
		record.Stopped, record.Delayed, record.Message = &at, nil, nil
		if then, err = b.recordSize(h, record); err != nil {
			return size{}, err
		}
	}
	return size{max(now.annotations, then.annotations), max(now.rest, then.rest)}, nil
}

// most is what it takes if the next attempt fails with the longest error.
func (b *budget) most(h *execution.HandlerState) (size, error) {
	return b.recordSize(h, h.Reserved(b.handling.Now()))
}

// naming is what it takes to be called by name in the record of its handler, once it has succeeded.
func (b *budget) naming(h *execution.HandlerState) size {
	bytes, _, _ := h.Naming()
	return size{}.plus(bytes, b.copies)
}

// recordSize is that of a record, and of its mentions in those of the handlers around.
func (b *budget) recordSize(h *execution.HandlerState, record progress.Record) (size, error) {
	if b.copies == (size{}) {
		return size{}, nil // it is kept elsewhere: a trial would be stored there
	}
	patch := map[string]any{}
	if err := b.handling.Progress.Store(patch, b.object.body, h.ID, record); err != nil {
		return size{}, fmt.Errorf("storing the progress of sub-handler %q: %w", h.ID, err)
	}
	_, levels, each := h.Naming()
	return sizeOfPatch(patch).plus(levels*each, b.copies), nil
}

// sizeOfPatch is that of what is written to an object.
func sizeOfPatch(patch map[string]any) (s size) {
	for key, value := range annotationsOf(patch) {
		// Every record has the marker with it, which is there once.
		if text, _ := value.(string); text != keys.ManagedValue {
			s.annotations += len(key) + len(text)
		}
	}
	for key, value := range patch {
		if key == "metadata" {
			continue
		}
		// What is not JSON is refused when it is written.
		text, _ := asciijson.Marshal(value)
		s.rest += len(text)
	}
	return s
}
