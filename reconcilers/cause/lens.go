package cause

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Lens reads the two essences of an object: the remembered and the present one.
// Both are freed of the progress keys, so that a foreign version of an essence causes no endless updates.
type Lens struct {
	// Diffbase stores the last-handled essences.
	Diffbase diffbase.Storage
	// Progress stores the records whose keys are no part of an essence.
	Progress progress.Reader
	// Extra are the paths that are part of the essence because handlers look at them, such as status fields.
	Extra []diff.Path
	// Redaction says what is remembered by digests alone.
	Redaction Redaction
}

// New builds the essence of the present object.
func (l *Lens) New(body map[string]any) (diffbase.Essence, error) {
	essence, err := l.Diffbase.Build(body, l.Extra)
	if err != nil {
		return nil, fmt.Errorf("building the essence: %w", err)
	}
	return l.Progress.Clear(essence), nil
}

// Old fetches the last-handled essence from a storage: that of the lens, or another one of the same form.
// It is nil if the object was never handled.
func (l *Lens) Old(body map[string]any, from diffbase.Storage) (diffbase.Essence, error) {
	essence, err := from.Fetch(body)
	if err != nil {
		return nil, fmt.Errorf("reading what was handled last: %w", err)
	}
	if essence == nil {
		return nil, nil
	}
	return l.Progress.Clear(essence), nil
}
