package changes

import (
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const (
	// restLimit is how large an object may become by records that are not annotations, in bytes of JSON: the API server
	// stores 1.5 MiB by default. Of what is left of it, the records have a half: the server notes the owner of each of
	// their fields as well. leastRest is for objects that are larger already: as long as the server takes it, they may
	// have some.
	restLimit, leastRest = 1400 * 1024, 32 * 1024
	// spare is left free for the small things that go with records: whose they are, and a digest of what was seen; and
	// for records that grow by some bytes with each attempt.
	spare = 4096
)

// weight is what is kept on an object, in bytes: annotations, and the rest.
type weight struct{ annotations, rest int }

func (w weight) plus(n int, other weight) weight {
	return weight{w.annotations + n*other.annotations, w.rest + n*other.rest}
}

func (w weight) fits() bool { return w.annotations >= 0 && w.rest >= 0 }

// room is what is left on an object for the progress of sub-handlers: none is called whose outcome could not be kept.
type room struct {
	left weight
	// taken is what is set apart for each sub-handler that is not finished, or was not when the room was measured.
	taken map[string]weight
	// running are those that are being called: whatever comes of them has a place.
	running map[string]bool
	// copies are how many places a record has.
	copies weight
	// changed is true if anything was taken since the measurement.
	changed bool
}

// measure finds out how much room there is: with all that is to be written now, and a success of all that will be
// called.
func (p *pass) measure() error {
	former := p.room
	p.room = &room{taken: map[string]weight{}, running: map[string]bool{}}
	if former != nil {
		p.room.running = former.running
	}
	if err := p.room.count(p.Progress, p.body); err != nil {
		return err
	}
	patch := map[string]any{}
	if err := p.state.Store(p.Progress, patch, p.body); err != nil {
		return err
	}
	p.room.left = weight{annotations: annotationsLimit - annotationsSize(p.body, patch) + p.interimSize() - spare}
	if p.room.copies.rest > 0 {
		rest, err := p.restLeft()
		if err != nil {
			return err
		}
		p.room.left.rest = rest
	}
	return p.setApart()
}

// restLeft is how much room there is outside of annotations.
func (p *pass) restLeft() (int, error) {
	text, err := asciijson.Marshal(p.body)
	if err != nil {
		return 0, fmt.Errorf("measuring the object: %w", err)
	}
	others, records := len(text), 0
	for _, e := range p.state.Handlers() {
		if !e.Sub() || !e.Recorded() {
			continue
		}
		w, err := p.weightOf(e)
		if err != nil {
			return 0, err
		}
		records += w.rest
		if e.Stored() {
			others -= w.rest
		}
	}
	return max(leastRest, (restLimit-others)/2) - records, nil
}

// setApart takes what is not written yet of the sub-handlers that are to be called.
func (p *pass) setApart() error {
	for _, e := range p.state.Handlers() {
		if !e.Sub() || e.Finished() || e.Postponed && !e.Recorded() {
			continue
		}
		counted, err := p.weightOf(e)
		if err != nil {
			return err
		}
		wanted, err := p.expected(e)
		if err != nil {
			return err
		}
		p.room.taken[e.ID] = counted
		p.room.take(e.ID, wanted)
	}
	p.room.changed = false
	return nil
}

// interimSize is what can be spared of what the first handler saw: a digest of it does.
func (p *pass) interimSize() (size int) {
	for _, key := range p.Interim.keys(p.body) {
		text, _ := annotationsOf(p.body)[key].(string)
		size += len(text)
	}
	return size
}

// take sets so much apart for a sub-handler, in place of what it had.
func (r *room) take(id string, w weight) {
	r.left = r.left.plus(1, r.taken[id]).plus(-1, w)
	r.taken[id], r.changed = w, true
}

// holds tells whether a sub-handler could have so much.
func (r *room) holds(id string, w weight) bool { return r.left.plus(1, r.taken[id]).plus(-1, w).fits() }

// count finds out in how many places the storage keeps a record.
func (r *room) count(to progress.Writer, body map[string]any) error {
	patch := map[string]any{}
	if err := to.Store(patch, body, "a", progress.Record{}); err != nil {
		return fmt.Errorf("asking the storage of progress for its places: %w", err)
	}
	for place, value := range storage.Leaves(patch) {
		switch {
		case !strings.HasPrefix(place, "/metadata/annotations/"):
			r.copies.rest = 1
		case value != keys.ManagedValue:
			r.copies.annotations++
		}
	}
	return nil
}

// weightOf is what a sub-handler takes on the object as it is.
func (p *pass) weightOf(e *execution.HandlerState) (weight, error) {
	switch {
	case e.Recorded():
		return p.recordWeight(e, e.Record())
	case e.Finished():
		return p.naming(e), nil
	default:
		return weight{}, nil
	}
}

// expected is what is to be set apart for one that is not finished: while it is called, for anything that may come of
// it; before, for a success, or for what there is now if that is more.
func (p *pass) expected(e *execution.HandlerState) (weight, error) {
	if p.room.running[e.ID] {
		return p.most(e)
	}
	now, err := p.weightOf(e)
	if err != nil || e.Tried() {
		return now, err
	}
	then := p.naming(e)
	if !p.CompactSubs {
		record, at := e.Record(), p.now()
		record.Stopped, record.Delayed, record.Message = &at, nil, nil
		if then, err = p.recordWeight(e, record); err != nil {
			return weight{}, err
		}
	}
	return weight{max(now.annotations, then.annotations), max(now.rest, then.rest)}, nil
}

// most is what it takes if the next attempt fails with the longest error.
func (p *pass) most(e *execution.HandlerState) (weight, error) {
	return p.recordWeight(e, e.Reserved(p.now()))
}

// naming is what it takes to be called by name in the record of its handler, once it has succeeded.
func (p *pass) naming(e *execution.HandlerState) weight {
	bytes, _, _ := e.Naming()
	return weight{}.plus(bytes, p.room.copies)
}

// recordWeight is that of a record, and of its mentions in those of the handlers around.
func (p *pass) recordWeight(e *execution.HandlerState, record progress.Record) (weight, error) {
	patch := map[string]any{}
	if err := p.Progress.Store(patch, p.body, e.ID, record); err != nil {
		return weight{}, fmt.Errorf("storing the progress of sub-handler %q: %w", e.ID, err)
	}
	_, levels, each := e.Naming()
	return weighed(patch).plus(levels*each, p.room.copies), nil
}

// weighed is the weight of what is written to an object.
func weighed(patch map[string]any) (w weight) {
	for key, value := range annotationsOf(patch) {
		// Every record has the marker with it, which is there once.
		if text, _ := value.(string); text != keys.ManagedValue {
			w.annotations += len(key) + len(text)
		}
	}
	for key, value := range patch {
		if key == "metadata" {
			continue
		}
		// What is not JSON is refused when it is written.
		text, _ := asciijson.Marshal(value)
		w.rest += len(text)
	}
	return w
}
