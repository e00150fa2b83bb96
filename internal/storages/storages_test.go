package storages_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

type object = map[string]any

func body() object {
	return object{
		"metadata": object{"annotations": object{"a": "b"}}, "spec": object{"list": []any{"x", object{"y": "z"}}},
	}
}

// overwriteValues changes everything in a value that can be changed.
func overwriteValues(value any) {
	switch value := value.(type) {
	case object:
		for key, inner := range value {
			overwriteValues(inner)
			value[key+"!"] = "scribble"
			value[key] = "scribble"
		}
	case []any:
		for i, inner := range value {
			overwriteValues(inner)
			value[i] = "scribble"
		}
	}
}

// careless is a storage that keeps all its arguments and results, and modifies them later.
type careless struct {
	diffbase.Annotations
	panics     bool
	keptValues []any
}

func (c *careless) keepValues(values ...any) {
	if c.panics {
		panic("boo")
	}
	c.keptValues = append(c.keptValues, values...)
}

func (c *careless) overwriteKept() {
	for _, value := range c.keptValues {
		overwriteValues(value)
		switch value := value.(type) {
		case []diff.Path:
			value[0][0] = "scribble"
			value[0] = nil
		case *progress.Record:
			*value.Started, *value.Message, value.Subrefs[0] = time.Time{}, "scribble", "scribble"
			overwriteValues(value.Unknown)
		case *string:
			*value = "scribble"
		}
	}
	c.keptValues = nil
}

func (c *careless) Build(body object, extra []diff.Path) (diffbase.Essence, error) {
	essence, err := c.Annotations.Build(body, extra)
	c.keepValues(body, extra, essence)
	return essence, err
}

func (c *careless) Fetch(body object) (diffbase.Essence, error) {
	essence, err := c.Annotations.Fetch(body)
	c.keepValues(body, essence)
	return essence, err
}

func (c *careless) Store(patch, body object, essence diffbase.Essence) error {
	err := c.Annotations.Store(patch, body, essence)
	c.keepValues(patch, body, essence)
	return err
}

type carelessProgress struct {
	*careless
	progress.Annotations
}

func (c carelessProgress) Fetch(body object, id string) (*progress.Record, error) {
	record, err := c.Annotations.Fetch(body, id)
	c.keepValues(body, record)
	return record, err
}

func (c carelessProgress) Clear(essence object) object {
	cleared := c.Annotations.Clear(essence)
	c.keepValues(essence, cleared)
	return cleared
}

func (c carelessProgress) Store(patch, body object, id string, record progress.Record) error {
	err := c.Annotations.Store(patch, body, id, record)
	c.keepValues(patch, body, &record)
	return err
}

func (c carelessProgress) Purge(patch, body object, id string) {
	c.Annotations.Purge(patch, body, id)
	c.keepValues(patch, body)
}

func (c carelessProgress) Touch(patch, body object, value *string) {
	c.Annotations.Touch(patch, body, value)
	c.keepValues(patch, body, value)
}

func record() progress.Record {
	return progress.Record{
		Started: ptr.To(time.Unix(7, 0).UTC()), Message: ptr.To("m"), Subrefs: []string{"s"},
		Unknown: object{"u": []any{"v"}},
	}
}

// useAllMethods uses all methods of the storages, calling ask in between, and returns all arguments and results.
func useAllMethods(t *testing.T, d diffbase.Storage, p progress.Storage, ask func()) []any {
	t.Helper()
	whole, extra, patch := body(), []diff.Path{{"status", "field"}}, object{
		"metadata": object{"labels": object{"l": "m"}},
	}
	own, value := record(), "touch"
	essence, err := d.Build(whole, extra)
	ask()
	cleared := p.Clear(essence)
	ask()
	err = errors.Join(err, d.Store(patch, whole, essence), p.Store(patch, whole, "fn", own))
	ask()
	p.Touch(patch, whole, &value)
	p.Purge(patch, whole, "other")
	ask()
	stored := object{"metadata": object{"annotations": patch["metadata"].(object)["annotations"]}}
	fetched, failed := d.Fetch(stored)
	ask()
	read, unread := p.Fetch(stored, "fn")
	ask()
	if err = errors.Join(err, failed, unread); err != nil {
		t.Fatal(err)
	}
	return []any{
		whole, extra, patch, own.Started, own.Message, own.Subrefs, own.Unknown, value, essence, cleared, fetched,
		read.Started, read.Message, read.Subrefs,
	}
}

// TestStoragesOfUsersAreKeptApart shows that a storage of a user cannot modify values of the engine, nor the engine
// those of the storage.
func TestStoragesOfUsersAreKeptApart(t *testing.T) {
	trusted := diffbase.Annotations{Prefix: "x.org"}
	store := progress.Annotations{Prefix: "x.org"}
	want := useAllMethods(t, trusted, store, func() {})
	for _, several := range []bool{false, true} {
		c := &careless{Annotations: trusted}
		own := carelessProgress{c, store}
		d, p := storages.IsolateDiffbase(c), storages.IsolateProgress(own)
		if several {
			d = storages.IsolateDiffbase(diffbase.Multi{diffbase.Multi{c}})
			p = storages.IsolateProgress(progress.Multi{progress.Multi{own}})
		}
		if d := cmp.Diff(want, useAllMethods(t, d, p, c.overwriteKept)); d != "" {
			t.Errorf("several %t: -want, +got:\n%s", several, d)
		}
	}
}

// TestStoragesThatPanicChangeNothing shows that a panic of a storage becomes an error, and that its incomplete write is
// dropped.
func TestStoragesThatPanicChangeNothing(t *testing.T) {
	c := &careless{Annotations: diffbase.Annotations{Prefix: "x.org"}, panics: true}
	d, p := storages.IsolateDiffbase(c), storages.IsolateProgress(carelessProgress{c,
		progress.Annotations{Prefix: "x.org"}})
	patch := object{}
	_, built := d.Build(body(), nil)
	_, fetched := d.Fetch(body())
	_, read := p.Fetch(body(), "fn")
	for method, err := range map[string]error{
		"Build of the storage *storages_test.careless: ": built, "Fetch of the storage *": fetched,
		"Store of the storage *":                              d.Store(patch, body(), diffbase.Essence{}),
		"Fetch of the storage storages_test.carelessProgress": read, "Store of the storage storages": p.Store(
			patch, body(), "fn", record(),
		),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), method) || !strings.HasSuffix(err.Error(), "panic: boo") {
			t.Errorf("want %q, got %v", method, err)
		}
	}
	if len(patch) > 0 {
		t.Errorf("a failed write changed the patch: %v", patch)
	}
}

// TestTrustedStoragesStayAsTheyAre shows that the storages of this project are not wrapped, as they need no copies.
func TestTrustedStoragesStayAsTheyAre(t *testing.T) {
	for _, one := range []diffbase.Storage{nil, diffbase.Annotations{Prefix: "x.org"}, diffbase.Status{}} {
		if d := cmp.Diff(one, storages.IsolateDiffbase(one)); d != "" {
			t.Error(d)
		}
	}
	for _, one := range []progress.Storage{
		nil, progress.Annotations{Prefix: "x.org"}, progress.Status{}, progress.Smart{},
	} {
		if d := cmp.Diff(one, storages.IsolateProgress(one)); d != "" {
			t.Error(d)
		}
	}
	if multi, ok := storages.IsolateDiffbase(diffbase.Multi{diffbase.Status{}}).(diffbase.Multi); !ok ||
		len(multi) != 1 {
		t.Error("a storage of several storages is wrapped, but the engine inspects it")
	}
}

// fixedResultStorage is a storage with a fixed result.
type fixedResultStorage struct {
	progress.Annotations
	record *progress.Record
	err    error
}

func (a fixedResultStorage) Fetch(object, string) (*progress.Record, error) { return a.record, a.err }

func (a fixedResultStorage) Store(object, object, string, progress.Record) error { return a.err }

// TestAnswersOfUsersStorages shows that a record that is returned with an error is ignored, and that a probe names the
// handler.
func TestAnswersOfUsersStorages(t *testing.T) {
	broken := errors.New("broken")
	kept := record()
	for name, tc := range map[string]struct {
		reason       string
		storedResult fixedResultStorage
		want         bool
	}{
		"Nothing": {"a missing record is not returned", fixedResultStorage{}, false},
		"Record":  {"a record is returned", fixedResultStorage{record: &kept}, true},
		"Error":   {"an error is returned without a record", fixedResultStorage{err: broken}, false},
		"BothOfThem": {"a record that is returned with an error is ignored",
			fixedResultStorage{record: &kept, err: broken}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := storages.IsolateProgress(tc.storedResult).Fetch(body(), "fn")
			if (got != nil) != tc.want || !errors.Is(err, tc.storedResult.err) {
				t.Errorf("%s: got %v with error %v", tc.reason, got, err)
			}
			err = storages.ProbeProgress(object{}, tc.storedResult, "fn")
			if !errors.Is(err, tc.storedResult.err) || err != nil && !strings.Contains(err.Error(), `handler "fn"`) {
				t.Errorf("the error of the probe does not name the handler: %v", err)
			}
		})
	}
}

// irremovable is a storage that cannot remove records.
type irremovable struct{ progress.Annotations }

func (irremovable) Purge(_, _ map[string]any, _ string) { panic("no removal") }

// TestProbeOfAStorageThatPanics shows that a panic of a storage during the probe is returned as an error.
func TestProbeOfAStorageThatPanics(t *testing.T) {
	kept := storages.IsolateProgress(irremovable{progress.Annotations{Prefix: "x.org"}})
	err := storages.ProbeProgress(map[string]any{}, kept, "fn")
	if err == nil || err.Error() != `removing a record of handler "fn": panic: no removal` {
		t.Errorf("want an error with the handler and the panic, got %v", err)
	}
}
