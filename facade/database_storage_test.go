package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// recordStore keeps records by the UIDs of the objects and the ids of the handlers. Flush saves the collected
// records.
type recordStore struct {
	mu       sync.Mutex
	rows     map[string]progress.Record
	pending  map[string]*progress.Record
	flushes  int
	flushErr error
}

func newRecordStore() *recordStore {
	return &recordStore{rows: map[string]progress.Record{}, pending: map[string]*progress.Record{}}
}

func row(body map[string]any, id string) string {
	uid, _ := diff.ResolvePath(body, diff.Path{"metadata", "uid"})
	return fmt.Sprint(uid) + "/" + id
}

func (d *recordStore) Fetch(body map[string]any, id string) (*progress.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if record, ok := d.rows[row(body, id)]; ok {
		own := record.Clone()
		return &own, nil
	}
	return nil, nil
}

func (d *recordStore) Clear(essence map[string]any) map[string]any { return essence }

func (d *recordStore) Store(_, body map[string]any, id string, record progress.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[row(body, id)] = &record
	return nil
}

func (d *recordStore) Purge(_, body map[string]any, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[row(body, id)] = nil
}

func (d *recordStore) Touch(_, _ map[string]any, _ *string) {}

func (d *recordStore) Flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flushErr != nil {
		return d.flushErr
	}
	d.flushes++
	for key, record := range d.pending {
		if record == nil {
			delete(d.rows, key)
		} else {
			d.rows[key] = record.Clone()
		}
	}
	clear(d.pending)
	return nil
}

func (d *recordStore) keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.rows))
}

// TestProgressInADatabase shows that a storage that keeps records in a database, and nothing on the object,
// continues a change after a restart. Records of finished handlers are removed.
func TestProgressInADatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, calls, server := newRecordStore(), &journal{}, memapi.New()
		kind := memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
		object := map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "w1", "uid": "u1"}}
		run := func(stop time.Duration) {
			op := kopf.New("database.example.org", kopf.Settings{
				Peering:     kopf.PeeringSettings{Standalone: true},
				Persistence: kopf.PersistenceSettings{ProgressStorage: kept},
			})
			kopf.ForResource(op, "configmaps").OnCreate("c", func(
				_ context.Context, c *kopf.Change[*kopf.Unstructured],
			) error {
				c.Sub("s", func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
					calls.add(fmt.Sprintf("%s %d", c.ID, c.Retry))
					if c.Retry < 2 {
						return kopf.Temporary(errors.New("not yet"), time.Minute)
					}
					return nil
				})
				return nil
			})
			r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
			r.Ready()
			time.Sleep(stop)
			synctest.Wait()
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
		}
		server.Put(kind, object)
		run(10 * time.Second)
		if d := cmp.Diff([]string{"u1/c", "u1/c/s"}, kept.keys()); d != "" {
			t.Errorf("the database has the records of the unfinished change only: -want, +got:\n%s", d)
		}
		run(10 * time.Minute)
		calls.requireLines(t, "c/s 0", "c/s 1", "c/s 2")
		if keys := kept.keys(); len(keys) > 0 || kept.flushes == 0 {
			t.Errorf("no record is left after the end of the change: got %v, flushed %d times", keys, kept.flushes)
		}
	})
}

// TestFlushThatFails shows that records that a storage cannot flush are not lost: the object waits and is retried.
func TestFlushThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, calls, server := newRecordStore(), &journal{}, memapi.New()
		op := kopf.New("database.example.org", kopf.Settings{
			Peering:     kopf.PeeringSettings{Standalone: true},
			Persistence: kopf.PersistenceSettings{ProgressStorage: kept},
		})
		kopf.ForResource(op, "configmaps").OnCreate("c", func(
			_ context.Context, c *kopf.Change[*kopf.Unstructured],
		) error {
			calls.add(fmt.Sprint(c.Retry))
			if c.Retry == 0 {
				kept.mu.Lock()
				kept.flushErr = errors.New("the database is down")
				kept.mu.Unlock()
				return kopf.Temporary(errors.New("not yet"), time.Second)
			}
			return nil
		})
		server.Put(memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true},
			map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "w1", "uid": "u1"}})
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(time.Minute)
		calls.requireLines(t, "0")
		kept.mu.Lock()
		kept.flushErr = nil
		kept.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		calls.requireLines(t, "0", "1")
	})
}
