package main

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// table keeps texts by the uid of an object and a key. It is safe for concurrent use.
type table interface {
	Get(uid, key string) (text string, found bool, err error)
	// Write puts all texts in one transaction. A nil text removes the row.
	Write(rows map[row]*string) error
	// Forget removes all rows of an object.
	Forget(uid string) error
}

type row struct{ UID, Key string }

func uidOf(body map[string]any) string {
	metadata, _ := body["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}

// configurations keeps the last-handled configurations. Build is that of the annotations.
type configurations struct {
	diffbase.Annotations
	table table
}

var _ diffbase.Storage = configurations{}

// Fetch returns the configuration. The table has the annotations that the embedded storage would write.
func (c configurations) Fetch(body map[string]any) (diffbase.Essence, error) {
	stored, err := read(c.table, body, "last-handled-configuration")
	if err != nil || stored == nil {
		return nil, err
	}
	return c.Annotations.Fetch(stored)
}

// Store is called before the object is written, and again if that fails.
func (c configurations) Store(_, body map[string]any, essence diffbase.Essence) error {
	text, err := written(func(patch map[string]any) error {
		return c.Annotations.Store(patch, map[string]any{}, essence)
	})
	if err != nil {
		return err
	}
	return c.table.Write(map[row]*string{{uidOf(body), "last-handled-configuration"}: &text})
}

// records keeps the progress of unfinished handlers. It collects the records of a pass for one transaction.
type records struct {
	annotations progress.Annotations
	table       table

	mu      sync.Mutex
	pending map[row]*string
}

var (
	_ progress.Storage = (*records)(nil)
	_ progress.Flusher = (*records)(nil)
)

func newRecords(t table) *records { return &records{table: t, pending: map[row]*string{}} }

func (r *records) Fetch(body map[string]any, id string) (*progress.Record, error) {
	stored, err := read(r.table, body, "progress/"+id)
	if err != nil || stored == nil {
		return nil, err
	}
	return r.annotations.Fetch(stored, id)
}

func (r *records) Store(_, body map[string]any, id string, record progress.Record) error {
	text, err := written(func(patch map[string]any) error {
		return r.annotations.Store(patch, map[string]any{}, id, record)
	})
	if err == nil {
		r.add(row{uidOf(body), "progress/" + id}, &text)
	}
	return err
}

func (r *records) Purge(_, body map[string]any, id string) {
	r.add(row{uidOf(body), "progress/" + id}, nil)
}

func (r *records) add(at row, text *string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[at] = text
}

// Flush is called before the object is written. After an error, the object waits, and Flush is called again.
func (r *records) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		return nil
	}
	if err := r.table.Write(r.pending); err != nil {
		return fmt.Errorf("writing the progress of handlers: %w", err)
	}
	clear(r.pending)
	return nil
}

// Clear and Touch have nothing to do, because nothing is on the object.
func (r *records) Clear(essence map[string]any) map[string]any { return essence }
func (r *records) Touch(_, _ map[string]any, _ *string)        {}

// written returns the annotations that a storage writes, as a text.
func written(store func(patch map[string]any) error) (string, error) {
	patch := map[string]any{}
	if err := store(patch); err != nil {
		return "", err
	}
	text, err := json.Marshal(patch)
	return string(text), err
}

// read returns an object with these annotations; nil if there is no row.
func read(t table, body map[string]any, key string) (map[string]any, error) {
	text, found, err := t.Get(uidOf(body), key)
	if err != nil || !found {
		return nil, err
	}
	var stored map[string]any
	return stored, json.Unmarshal([]byte(text), &stored)
}
