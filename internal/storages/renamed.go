package storages

import (
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Renamed maps the current ids of registered handlers to their former ids. If any handler is renamed, the map has the
// ids of all handlers, those without former ids included.
type Renamed map[string][]string

// FormerIDs returns the former ids of a handler. For a sub-handler, it derives them from those of the nearest
// registered handler in its path. A registered handler whose id contains a slash, such as one for a field, is not a
// part of another handler.
func (r Renamed) FormerIDs(id string) (former []string) {
	for owner := id; ; owner = owner[:strings.LastIndexByte(owner, '/')] {
		if olds, isRegistered := r[owner]; isRegistered {
			for _, old := range olds {
				former = append(former, old+id[len(owner):])
			}
			return former
		}
		if !strings.Contains(owner, "/") {
			return nil
		}
	}
}

// AddFormerIDs adds former ids of a handler, each once, and returns the map. It creates the map if r is nil.
func (r Renamed) AddFormerIDs(id string, former []string) Renamed {
	if r == nil {
		r = Renamed{}
	}
	all := r[id]
	for _, old := range former {
		if !slices.Contains(all, old) {
			all = append(all, old)
		}
	}
	r[id] = all
	return r
}

// WithFormerIDs returns a storage that takes over the records of former ids. It reads them if there is no record of the
// current id. It writes only the current id, and removes the former ones with each write and removal.
func WithFormerIDs(kept progress.Storage, renamed Renamed) progress.Storage {
	if len(renamed) == 0 {
		return kept
	}
	return renamingStorage{kept, renamed}
}

// WithoutFormerIDs returns the storage that [WithFormerIDs] wrapped, and any other storage unchanged.
func WithoutFormerIDs(kept progress.Storage) progress.Storage {
	if renaming, ok := kept.(renamingStorage); ok {
		return renaming.Storage
	}
	return kept
}

// renamingStorage is the storage of [WithFormerIDs].
type renamingStorage struct {
	progress.Storage
	renamed Renamed
}

// Fetch returns the record of the id, or that of the first former id with a record. The sub-handlers in it get the
// current id.
func (r renamingStorage) Fetch(body map[string]any, id string) (*progress.Record, error) {
	record, err := r.Storage.Fetch(body, id)
	if record != nil || err != nil {
		return record, err
	}
	for _, old := range r.renamed.FormerIDs(id) {
		if record, err = r.Storage.Fetch(body, old); err != nil {
			return nil, err
		}
		if record != nil {
			// The record belongs to the storage, which may return it again.
			own := record.Clone()
			for i, sub := range own.Subrefs {
				if rest, ok := strings.CutPrefix(sub, old+"/"); ok {
					own.Subrefs[i] = id + "/" + rest
				}
			}
			return &own, nil
		}
	}
	return nil, nil
}

// Store writes the record of the id, and removes those of former ids.
func (r renamingStorage) Store(patch, body map[string]any, id string, record progress.Record) error {
	if err := r.Storage.Store(patch, body, id, record); err != nil {
		return err
	}
	r.purgeFormer(patch, body, id)
	return nil
}

// Purge removes the record of the id and those of former ids.
func (r renamingStorage) Purge(patch, body map[string]any, id string) {
	r.Storage.Purge(patch, body, id)
	r.purgeFormer(patch, body, id)
}

// purgeFormer removes the records of former ids. Otherwise an old record would be read again after the current one is
// removed.
func (r renamingStorage) purgeFormer(patch, body map[string]any, id string) {
	for _, old := range r.renamed.FormerIDs(id) {
		r.Storage.Purge(patch, body, old)
	}
}

// Flush calls Flush of the storage. An embedded interface does not promote methods that are not part of it.
func (r renamingStorage) Flush() error { return progress.Flush(r.Storage) }
