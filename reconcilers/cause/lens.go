package cause

import (
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
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

// New builds the essence of the present object. An extra field that leads through something else than a mapping is one
// that the object does not have, whatever its handlers want: Kopf does not handle such an object at all.
func (l *Lens) New(body map[string]any) (diffbase.Essence, error) {
	essence, err := l.Diffbase.Build(body, l.reachable(body))
	if err != nil {
		return nil, fmt.Errorf("building the essence: %w", err)
	}
	return l.cleared(essence)
}

// reachable are the extra fields without those that the storages take for errors.
func (l *Lens) reachable(body map[string]any) []diff.Path {
	blocked := func(field diff.Path) bool { _, found := obstacle(body, field); return found }
	if !slices.ContainsFunc(l.Extra, blocked) {
		return l.Extra
	}
	return slices.DeleteFunc(slices.Clone(l.Extra), blocked)
}

// Unreachable are the extra fields that lead through a list or a scalar, each once. What leads through a null is as
// good as absent.
func (l *Lens) Unreachable(body map[string]any) (fields []diff.Path) {
	for _, field := range l.Extra {
		value, found := obstacle(body, field)
		known := func(other diff.Path) bool { return slices.Equal(other, field) }
		if found && value != nil && !slices.ContainsFunc(fields, known) {
			fields = append(fields, field)
		}
	}
	return fields
}

// obstacle is what a field leads through that is no mapping, if there is such a thing.
func obstacle(body map[string]any, field diff.Path) (value any, found bool) {
	value = body
	for _, key := range field {
		mapping, ok := value.(map[string]any)
		if !ok {
			return value, true
		}
		if value, ok = mapping[key]; !ok {
			return nil, false
		}
	}
	return nil, false
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
	return l.cleared(essence)
}

// cleared is the essence without progress. A storage that panics must not take anything else with it.
func (l *Lens) cleared(essence diffbase.Essence) (cleared diffbase.Essence, err error) {
	err = panics.Contain(func() error { cleared = l.Progress.Clear(essence); return nil })
	if err != nil {
		return nil, fmt.Errorf("clearing the essence of progress: %w", err)
	}
	return cleared, nil
}
