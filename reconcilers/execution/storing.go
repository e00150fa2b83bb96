package execution

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Store adds the changed records of the selected handlers to the merge-patch.
func (s *State) Store(to progress.Writer, patch, body map[string]any) error {
	for _, e := range s.entries {
		if !e.Active || !e.changed() {
			continue
		}
		if err := to.Store(patch, body, e.ID, e.Record()); err != nil {
			return fmt.Errorf("storing the progress of handler %q: %w", e.ID, err)
		}
	}
	return nil
}

// Purge adds the removal of all records of the owned handlers, and of their sub-handlers, to the merge-patch.
func (s *State) Purge(to progress.Writer, patch, body map[string]any) {
	purged := make(map[string]bool, len(s.owned))
	purge := func(id string) {
		if !purged[id] {
			purged[id] = true
			to.Purge(patch, body, id)
		}
	}
	for _, id := range s.owned {
		purge(id)
	}
	for _, e := range s.entries {
		purge(e.ID)
		for _, id := range e.Subrefs {
			purge(id)
		}
	}
}

// PurgePassive does the same for the handlers that are not selected any more.
// Those that are keep their records, whether or not they change in this pass.
func (s *State) PurgePassive(to progress.Writer, patch, body map[string]any) {
	for _, e := range s.entries {
		if e.Active {
			continue
		}
		to.Purge(patch, body, e.ID)
		for _, id := range e.Subrefs {
			to.Purge(patch, body, id)
		}
	}
}

// Written marks the records as stored: they are not stored again unless they change.
func (s *State) Written() {
	for _, e := range s.entries {
		if e.Active {
			record := e.Record()
			e.loaded = &record
		}
	}
}
