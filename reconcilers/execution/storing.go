package execution

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Store adds the changed records of the selected handlers to the merge-patch, and the removal of those that are not
// needed any more.
func (s *State) Store(to progress.Writer, patch, body map[string]any) error {
	for _, e := range s.handlers {
		if e.Active && !e.Recorded() && e.loaded != nil {
			if err := Purge(to, patch, body, e.ID); err != nil {
				return err
			}
		}
		if !e.Active || !e.Recorded() || !e.changed() {
			continue
		}
		record := e.Record()
		if record.Message != nil {
			// It may be one that was read, of any length; and escaped, it is longer than it was.
			record.Message = ptr.To(asciijson.Cut(*record.Message, messageLimit))
		}
		if err := to.Store(patch, body, e.ID, record); err != nil {
			return fmt.Errorf("storing the progress of handler %q: %w", e.ID, err)
		}
	}
	return nil
}

// Purge adds the removal of all records of the owned handlers, and of their sub-handlers, to the merge-patch. What a
// storage fails to remove is in the error, and does not keep the others.
func (s *State) Purge(to progress.Writer, patch, body map[string]any) error {
	removal := removal{to: to, patch: patch, body: body, done: make(map[string]bool, len(s.owned))}
	for _, id := range s.owned {
		removal.of(id)
	}
	for _, e := range s.handlers {
		removal.of(e.ID)
		for _, id := range e.Subrefs {
			removal.of(id)
		}
	}
	return removal.err
}

// PurgePassive does the same for the handlers that are not selected any more.
// Those that are keep their records, whether or not they change in this pass.
func (s *State) PurgePassive(to progress.Writer, patch, body map[string]any) error {
	removal := removal{to: to, patch: patch, body: body, done: map[string]bool{}}
	for _, e := range s.handlers {
		if e.Active {
			continue
		}
		removal.of(e.ID)
		for _, id := range e.Subrefs {
			if other := s.byID[id]; other == nil || !other.Active {
				removal.of(id)
			}
		}
	}
	return removal.err
}

// removal removes records, each once.
type removal struct {
	to          progress.Writer
	patch, body map[string]any
	done        map[string]bool
	err         error // the first one
}

func (r *removal) of(id string) {
	if r.done[id] {
		return
	}
	r.done[id] = true
	if err := Purge(r.to, r.patch, r.body, id); err != nil && r.err == nil {
		r.err = err
	}
}

// Purge adds the removal of one record to the merge-patch. A storage that panics is an error.
func Purge(to progress.Writer, patch, body map[string]any, id string) error {
	err := panics.Contain(func() error { to.Purge(patch, body, id); return nil })
	if err != nil {
		return fmt.Errorf("removing the progress of handler %q: %w", id, err)
	}
	return nil
}

// Records are those of the selected handlers, by their ids.
func (s *State) Records() map[string]progress.Record {
	records := make(map[string]progress.Record, len(s.handlers))
	for _, e := range s.handlers {
		if e.Active {
			records[e.ID] = e.Record()
		}
	}
	return records
}

// Written marks the records as stored: they are not stored again unless they change.
func (s *State) Written() {
	for _, e := range s.handlers {
		if !e.Active {
			continue
		}
		if !e.Recorded() {
			e.loaded = nil
			continue
		}
		record := e.Record()
		e.loaded = &record
	}
}
