package changes

import (
	"errors"
	"fmt"
)

var errNotKept = errors.New(
	"the API server took the write, but did not keep what was to be remembered: if it is in the status, the CRD " +
		"must allow that field, such as with x-kubernetes-preserve-unknown-fields",
)

// kept tells whether the object remembers what it was given to. A field that a CRD does not know is dropped without a
// word, and the object would be new forever, its handlers called again and again. The error delays the object until the
// write lasts, and handlers wait for that.
func (p *pass) kept(patch map[string]any) error {
	switch {
	case p.gone || p.released || len(patch) == 0:
		return nil
	case p.state.Done():
		return p.keptHandled(patch)
	}
	for _, entry := range p.state.Handlers() {
		if !entry.Recorded() {
			continue
		}
		wanted, err := p.Progress.Fetch(patch, entry.ID)
		if err != nil || wanted == nil {
			continue
		}
		if record, err := p.Progress.Fetch(p.body, entry.ID); err == nil && record == nil {
			return fmt.Errorf("progress of handler %q: %w", entry.ID, errNotKept)
		}
	}
	return nil
}

func (p *pass) keptHandled(patch map[string]any) error {
	wanted, err := p.Lens.Diffbase.Fetch(patch)
	if err != nil || wanted == nil {
		return nil
	}
	if stored, err := p.Lens.Diffbase.Fetch(p.body); err == nil && stored == nil {
		return fmt.Errorf("last-handled configuration: %w", errNotKept)
	}
	return nil
}
