package storages

import (
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Renamed are the former ids of registered handlers by their present ids. If one handler is renamed, it has the ids of
// all handlers.
type Renamed map[string][]string

// Of returns the former ids of a handler, or those of a sub-handler of a renamed one. The nearest registered handler
// decides: a handler of its own, such as that of a field, is not a part of another handler.
func (r Renamed) Of(id string) (former []string) {
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

// With adds former ids, each once.
func (r Renamed) With(id string, former []string) Renamed {
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

// WithFormerIDs returns a storage that takes over records of former ids: it reads them where there is none of the
// present id, writes the present one alone, and removes the former ones with each write and removal.
func WithFormerIDs(kept progress.Storage, renamed Renamed) progress.Storage {
	if len(renamed) == 0 {
		return kept
	}
	return renaming{kept, renamed}
}

// WithoutFormerIDs returns the storage inside of one from WithFormerIDs, and any other storage itself.
func WithoutFormerIDs(kept progress.Storage) progress.Storage {
	if renaming, ok := kept.(renaming); ok {
		return renaming.Storage
	}
	return kept
}

type renaming struct {
	progress.Storage
	renamed Renamed
}

// Fetch returns the record of the id, or else that of a former id, with its sub-handlers under the present id.
func (r renaming) Fetch(body map[string]any, id string) (*progress.Record, error) {
	record, err := r.Storage.Fetch(body, id)
	if record != nil || err != nil {
		return record, err
	}
	for _, old := range r.renamed.Of(id) {
		if record, err = r.Storage.Fetch(body, old); err != nil {
			return nil, err
		}
		if record != nil {
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
func (r renaming) Store(patch, body map[string]any, id string, record progress.Record) error {
	if err := r.Storage.Store(patch, body, id, record); err != nil {
		return err
	}
	r.purgeFormer(patch, body, id)
	return nil
}

// Purge removes the record of the id and those of former ids.
func (r renaming) Purge(patch, body map[string]any, id string) {
	r.Storage.Purge(patch, body, id)
	r.purgeFormer(patch, body, id)
}

func (r renaming) purgeFormer(patch, body map[string]any, id string) {
	for _, old := range r.renamed.Of(id) {
		r.Storage.Purge(patch, body, old)
	}
}

// Flush is that of the storage.
func (r renaming) Flush() error { return progress.Flush(r.Storage) }
