package changes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// panickingStorage is a diff-base storage of a user, and the base of a progress storage; one method panics.
type panickingStorage struct {
	panickingMethod string
	diffbase.Annotations
}

func (f *panickingStorage) breaks(method string) {
	if f.panickingMethod == method {
		panic("no " + method)
	}
}

func (f *panickingStorage) Build(body map[string]any, extra []diff.Path) (diffbase.Essence, error) {
	f.breaks("Build")
	return f.Annotations.Build(body, extra)
}

func (f *panickingStorage) Fetch(body map[string]any) (diffbase.Essence, error) {
	f.breaks("Diffbase.Fetch")
	return f.Annotations.Fetch(body)
}

func (f *panickingStorage) Store(patch, body map[string]any, essence diffbase.Essence) error {
	f.breaks("Diffbase.Store")
	return f.Annotations.Store(patch, body, essence)
}

type fragileProgress struct {
	*panickingStorage
	progress.Annotations
}

func (f fragileProgress) Fetch(body map[string]any, id string) (*progress.Record, error) {
	f.breaks("Fetch")
	return f.Annotations.Fetch(body, id)
}

func (f fragileProgress) Clear(essence map[string]any) map[string]any {
	f.breaks("Clear")
	return f.Annotations.Clear(essence)
}

func (f fragileProgress) Store(patch, body map[string]any, id string, record progress.Record) error {
	f.breaks("Store")
	return f.Annotations.Store(patch, body, id, record)
}

func (f fragileProgress) Purge(patch, body map[string]any, id string) {
	f.breaks("Purge")
	f.Annotations.Purge(patch, body, id)
}

// startWithPanics starts a process with these storages, which work until a test breaks a method.
func (w *harness) startWithPanics(registered ...*handlers.Handler) (*process, *panickingStorage) {
	f := &panickingStorage{Annotations: diffbase.Annotations{Prefix: prefix, WithoutV1: true}}
	own := fragileProgress{f, progress.Annotations{Prefix: prefix, WithoutV1: true}}
	return w.startWith(stores{storages.IsolateDiffbase(f), storages.IsolateProgress(own)}, registered...), f
}

// TestStoragesThatPanic shows that a panic in a storage of a user affects only one object.
func TestStoragesThatPanic(t *testing.T) {
	for _, method := range []string{"Build", "Diffbase.Fetch", "Diffbase.Store", "Fetch", "Clear", "Store", "Purge"} {
		run(t, map[string]scenario{
			method: {"a panic of a storage is an error, and the object continues once it works", func(w *harness) {
				p, f := w.startWithPanics(
					onCreate("a", fails(1, temporaryError{time.Second})), onUpdate("u", ok), onDelete("d", ok),
				)
				f.panickingMethod = method
				for range 3 {
					_, err := p.pass()
					if err != nil && !strings.Contains(err.Error(), "panic: no "+method) {
						w.t.Errorf("want the panic in the error, got %v", err)
					}
					time.Sleep(time.Second)
				}
				if _, err := p.pass(); err == nil {
					w.t.Error("the pass succeeded, want an error")
				}
				f.panickingMethod = ""
				p.settle()
				if calls := w.calls(); len(calls) != 2 {
					w.t.Errorf("want one failure and one success, got %v", calls)
				}
				w.wantHandled("repaired", "one")
				w.wantClean("repaired")
			}},
			method +
				"Deleted": {"a panic of a storage does not block a deletion, and is logged once",
				func(w *harness) {
					failing := onDelete("f", fails(9, temporaryError{10 * time.Second}), retries(3))
					p, f := w.startWithPanics(
						onCreate("a", ok), onDelete("d", fails(2, temporaryError{10 * time.Second})), onDelete("e", ok),
						failing,
					)
					p.settle()
					w.delete()
					w.calls()
					f.panickingMethod = method
					p.settle()
					w.wantCalls(
						"deletion", "0s delete d", "0s delete e", "0s delete f", "10s delete d", "10s delete f",
						"20s delete d", "20s delete f",
					)
					w.want("errors", []error(nil), p.errs)
					w.want("stored", map[string]any(nil), w.stored())
					told := slices.DeleteFunc(
						w.logLines, func(line string) bool { return !strings.Contains(line, "no "+method) },
					)
					texts := map[string]bool{}
					for _, line := range told {
						text, _, _ := strings.Cut(line, `"stack"`)
						texts[text] = true
					}
					if len(told) != len(texts) || len(told) == 0 && method != "Diffbase.Store" {
						w.t.Errorf("%d lines of %d texts: %v", len(told), len(texts), texts)
					}
				}},
		})
	}
}

// TestForeignMemoryOfStoragesThatPanic shows the handling of a copied object if the storage panics.
func TestForeignMemoryOfStoragesThatPanic(t *testing.T) {
	run(t, map[string]scenario{"Copied": {"a copy waits while its foreign memory cannot be removed", func(w *harness) {
		p, f := w.startWithPanics(onCreate("a", fails(1, temporaryError{time.Second})), onDelete("d", ok))
		_, _ = p.pass()
		w.set("another", "metadata", "annotations", boundToAnnotation)
		w.calls()
		f.panickingMethod = "Purge"
		if _, err := p.pass(); err == nil || len(w.calls()) > 0 {
			w.t.Errorf("want an error and no call, got %v", err)
		}
		w.delete()
		p.settle()
		w.want("stored", map[string]any(nil), w.stored())
	}}})
}
