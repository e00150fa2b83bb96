package changes

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// besideKey stands in the interim essence, with its binding. No object of Kubernetes has such a field.
const besideKey = "$beside"

// binding is what interim memory is valid beside: once another operator has ended the cause, or has begun one of its
// own, it is not.
type binding struct {
	handled string // the fingerprint of the configuration handled last; empty if there was none
	// what the interim memory is of; nil if no cause is open, and some handlers have seen the one, some the other
	success *success
}

// success is the record of one; or the record that names a sub-handler that succeeded, and since when there is that
// record.
type success struct{ id, stopped, since string }

func successOf(id string, record *progress.Record) *success {
	if record == nil || record.Success == nil || !*record.Success {
		return nil
	}
	s := &success{id: id}
	if record.Stopped != nil {
		s.stopped = progress.FormatTimestamp(record.Stopped.UTC())
	}
	return s
}

// evidence is what a record has of any success.
func evidence(id string, record *progress.Record) *success {
	if found := successOf(id, record); found != nil || record == nil || len(record.Succeeded) == 0 {
		return found
	}
	s := &success{id: id}
	if record.Started != nil {
		s.since = progress.FormatTimestamp(record.Started.UTC())
	}
	return s
}

// value is the form to be persisted.
func (b binding) value() map[string]any {
	value := map[string]any{"handled": b.handled}
	if b.success != nil {
		value["success"], value["stopped"] = b.success.id, b.success.stopped
		if b.success.since != "" {
			value["since"] = b.success.since
		}
	}
	return value
}

// unknown is no fingerprint.
const unknown = "?"

// parseBinding gives a binding that nothing stands beside if it is none of ours.
func parseBinding(stored any) *binding {
	value, _ := stored.(map[string]any)
	handled, ok := value["handled"].(string)
	if !ok {
		handled = unknown
	}
	b := &binding{handled: handled}
	if id, ok := value["success"].(string); ok {
		stopped, _ := value["stopped"].(string)
		since, _ := value["since"].(string)
		b.success = &success{id, stopped, since}
	}
	return b
}

// believes tells whether what the binding is of is still there. Without a binding, as interim memory was stored once,
// any success will do.
func (p *pass) believes(b *binding, read func(id string) (*progress.Record, error)) (bool, error) {
	if b == nil {
		found, err := p.success(p.former)
		return found != nil, err
	}
	handled, err := cause.Fingerprint(p.stored)
	switch {
	case err != nil || handled != b.handled:
		return false, err
	case b.success == nil:
		return true, nil
	}
	record, err := read(b.success.id)
	if err != nil {
		return false, err
	}
	found := evidence(b.success.id, record)
	return found != nil && *found == *b.success, nil
}

// believe drops the interim memory if it is of another cause than what else is remembered.
func (p *pass) believe() error {
	p.stale = false
	if p.interim == nil {
		return nil
	}
	_, beside, err := p.Interim.read(p.reading)
	if err != nil {
		return err
	}
	believed, err := p.believes(beside, p.read)
	if err == nil && !believed {
		p.interim, p.stale = nil, true
	}
	return err
}

// success finds one of a handler of the state's own purpose, or of any for a state without one; or that of a
// sub-handler of one: these are known by name only until their parent is called.
func (p *pass) success(state *execution.State) (*success, error) {
	met := records{}
	for _, e := range state.Handlers() {
		if !e.Recorded() {
			continue // the record of its handler names it
		}
		record := e.Record()
		if found := evidence(e.ID, &record); found != nil && serves(e.Purpose, state) {
			return found, nil
		}
		for _, id := range e.Subrefs {
			if state.Handler(id) != nil || !met.first(id) {
				continue // its state is known, or it was read
			}
			record, err := p.read(id)
			if err != nil {
				return nil, err
			}
			if found := evidence(id, record); found != nil && (record.Purpose == nil || serves(
				*record.Purpose, state,
			)) {
				return found, nil
			}
		}
	}
	return nil, nil
}

func serves(purpose string, state *execution.State) bool {
	return purpose == "" || state.Purpose == "" || purpose == state.Purpose
}

// storeInterim stores the essence with what it is valid beside.
func (p *pass) storeInterim(patch *patching.Patch, seen diffbase.Essence, beside binding) error {
	_, err := p.storeFitting(patch, seen, func(patch, body map[string]any, form diffbase.Essence) error {
		bound := maps.Clone(form)
		bound[besideKey] = beside.value()
		return p.Interim.Store(patch, body, bound)
	})
	return err
}

// storeOpen stores what the first successful handler saw, for as long as the cause is open.
func (p *pass) storeOpen(patch *patching.Patch) error {
	found, err := p.success(p.state)
	if err != nil || found == nil {
		return err
	}
	handled, err := cause.Fingerprint(p.stored)
	if err != nil {
		return err
	}
	return p.storeInterim(patch, p.interim, binding{handled: handled, success: found})
}

// storeBeside stores what some handlers have seen beside what the patch stores as handled last.
func (p *pass) storeBeside(patch *patching.Patch, seen diffbase.Essence) error {
	writing := patching.Patch{Merge: patch.Merge}
	after, err := writing.ApplyTo(p.body)
	if err != nil {
		return err
	}
	stored, err := p.Lens.Old(after, p.Lens.Diffbase)
	if err != nil {
		return err
	}
	handled, err := cause.Fingerprint(stored)
	if err != nil {
		return err
	}
	return p.storeInterim(patch, seen, binding{handled: handled})
}

// interimStored tells whether the object has just that one, of the open cause, with the patch applied: it may have a
// stale one, or one of no open cause; and the patch may take the record that it is valid beside.
func (p *pass) interimStored(patch *patching.Patch) bool {
	stored, beside, err := p.Interim.read(p.body)
	if err != nil || stored == nil || beside != nil && beside.success == nil {
		return false
	}
	writing := patching.Patch{Merge: patch.Merge}
	after, err := writing.ApplyTo(p.body)
	if err != nil {
		return false
	}
	read := func(id string) (*progress.Record, error) { return p.Progress.Fetch(after, id) }
	if believed, err := p.believes(beside, read); err != nil || !believed {
		return false
	}
	recalled, _ := p.Lens.Redaction.Recall(p.body, stored, p.interim)
	return diff.Equal(asValue(recalled), asValue(p.interim))
}
