package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
)

// house returns a house of the cluster.
func (d *drained) house(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: d.api.Object(houses, "default", name)}
}

// requireItems checks which things are left, by parts of their lines.
func requireItems(t *testing.T, report *draining.DrainReport, wanted ...string) {
	t.Helper()
	if len(report.Items) != len(wanted) {
		t.Errorf("%d things are left: got %v", len(wanted), report.Items)
		return
	}
	for i, one := range report.Items {
		if line := fmt.Sprint(one.Object, ": ", one.What, ": ", one.Reason); !strings.Contains(line, wanted[i]) {
			t.Errorf("want %q in the line: %s", wanted[i], line)
		}
	}
}

// TestDrainKeepsThings shows what a drain leaves: with KeepMemory the annotations, and always those of other clients.
func TestDrainKeepsThings(t *testing.T) {
	const note = "drain.example.com/note"
	inDrained(t, kopf.Settings{}, func(d *drained) {
		d.api.Edit(houses, "default", "one", func(house map[string]any) {
			annotations := (&unstructured.Unstructured{Object: house}).GetAnnotations()
			annotations[note], annotations["drain.example.com/former"] = "text", `{"started":"2020-01-01T00:00:00Z"}`
			(&unstructured.Unstructured{Object: house}).SetAnnotations(annotations)
		})
		before := d.house("one").GetAnnotations()
		requireItems(t, d.drain(nil, func(one *draining.Drain) { one.KeepMemory = true }))
		if diff := cmp.Diff(before, d.house("one").GetAnnotations()); diff != "" {
			t.Errorf("the memory is kept (-want, +got):\n%s", diff)
		}
		if got := d.house("one").GetFinalizers(); !slices.Equal(got, []string{"other.example.com/finalizer"}) {
			t.Errorf("only the finalizers of others are left: got %v", got)
		}
		report := d.drain(nil, nil)
		if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], note) {
			t.Errorf("the report names an annotation that stays: got %v", report.Notes)
		}
		want := map[string]string{note: "text", "other.example.com/create": `{"started":"2020-01-01T00:00:00Z"}`}
		if diff := cmp.Diff(want, d.house("one").GetAnnotations()); diff != "" {
			t.Errorf("annotations of other clients stay, records of former handlers do not (-want, +got):\n%s", diff)
		}
	})
}

// TestDrainAsKopf shows that only the records of the operator's own handlers are removed from what several operators of
// Kopf share, unless the user confirms that there are no others.
func TestDrainAsKopf(t *testing.T) {
	inDrained(t, kopf.AsKopf(), func(d *drained) {
		d.api.Edit(houses, "default", "one", func(house map[string]any) {
			annotations := (&unstructured.Unstructured{Object: house}).GetAnnotations()
			annotations["kopf.zalando.org/python_fn"] = `{"started":"2020-01-01T00:00:00Z"}`
			(&unstructured.Unstructured{Object: house}).SetAnnotations(annotations)
		})
		const declaredIn = "kopf.zalando.org/declared-in"
		d.api.Edit(settings, "default", "one-child", func(child map[string]any) {
			of := &unstructured.Unstructured{Object: child}
			annotations := of.GetAnnotations()
			annotations[declaredIn] += ",children-of.python_fn"
			of.SetAnnotations(annotations)
		})
		marks := func(child string) (count int) {
			of := &unstructured.Unstructured{Object: d.api.Object(settings, "default", child)}
			for _, fields := range []map[string]string{of.GetLabels(), of.GetAnnotations()} {
				for name := range fields {
					if strings.HasPrefix(name, "kopf.zalando.org/") {
						count++
					}
				}
			}
			return count
		}
		requireItems(t, d.drain(nil, nil))
		if got := marks("one-child"); got != 2 {
			t.Errorf("the label and the annotation of a child of two operators stay: got %d marks", got)
		}
		if got := marks("two-child"); got > 0 {
			t.Errorf("the marks of a child of this operator alone are removed: got %d", got)
		}
		var left []string
		for name := range d.house("one").GetAnnotations() {
			left = append(left, strings.TrimPrefix(name, "kopf.zalando.org/"))
		}
		slices.Sort(left)
		want := []string{
			"handling-configuration", "last-handled-configuration", "other.example.com/create", "python_fn",
		}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("annotations that other operators can use stay (-want, +got):\n%s", diff)
		}
		if got := d.house("two").GetFinalizers(); len(got) != 1 {
			t.Errorf("the shared finalizer stays: got %v", got)
		}
		requireItems(t, d.drain(nil, func(one *draining.Drain) { one.SharedToo = true }))
		if got := d.house("two"); len(got.GetFinalizers()) > 0 || len(got.GetAnnotations()) > 0 {
			t.Errorf("with SharedToo, nothing is left: got %v", got)
		}
		if got := marks("one-child"); got > 0 {
			t.Errorf("with SharedToo, the marks of all children are removed: got %d", got)
		}
		if got := d.house("one").GetAnnotations(); len(got) != 2 {
			t.Errorf("records of unknown handlers stay in any case: got %v", got)
		}
	})
}

// TestDrainOfDeletedObjects shows that objects whose delete handlers have not finished are left and listed, unless the
// user wants to skip their handlers.
func TestDrainOfDeletedObjects(t *testing.T) {
	inDrained(t, kopf.Settings{}, func(d *drained) {
		people, err := memapi.NewClient(d.api, houses)
		if err != nil {
			t.Fatal(err)
		}
		if err := people.Delete(t.Context(), d.house("two")); err != nil {
			t.Fatal(err)
		}
		requireItems(t, d.drain(nil, nil),
			"House.test.example.org default/two: finalizer, annotation drain.example.com/children-of")
		if got := d.house("two"); len(got.GetFinalizers()) == 0 || len(got.GetAnnotations()) == 0 {
			t.Errorf("an object with unfinished delete handlers stays as it is: got %v", got)
		}
		requireItems(t, d.drain(nil, func(one *draining.Drain) { one.SkipDeletions = true }))
		if got := d.api.Object(houses, "default", "two"); got != nil {
			t.Errorf("the object is released: got %v", got)
		}
		if got := d.calls.count(); got > 0 {
			t.Errorf("no handler is called: got %d calls", got)
		}
	})
}

// TestDrainWithErrors shows that an error of one object does not stop the others, and that a repeated drain completes
// an incomplete one.
func TestDrainWithErrors(t *testing.T) {
	isPatch := func(r memapi.Request, name string) bool { return r.Verb == "patch" && strings.HasSuffix(r.Path, name) }
	for name, c := range map[string]struct {
		reason string
		before func(d *drained, count int, r memapi.Request) error // the count of former patches of the same object
		left   []string
	}{
		"forbidden": {"a refused object is left, and all others are drained",
			func(_ *drained, _ int, r memapi.Request) error {
				if isPatch(r, "/one") {
					return memapi.NewRefusal(http.StatusForbidden, "reason", "Forbidden", "message", "not for you")
				}
				return nil
			}, []string{"House.test.example.org default/one: finalizer"}},
		"conflict": {"an object that another client changes is read again, and nothing of it is lost",
			func(d *drained, count int, r memapi.Request) error {
				if count == 0 && isPatch(r, "/one") {
					d.api.Edit(houses, "default", "one", func(house map[string]any) {
						of := &unstructured.Unstructured{Object: house}
						of.SetFinalizers(append([]string{"new.example.com/finalizer"}, of.GetFinalizers()...))
					})
				}
				return nil
			}, nil},
		"recreated": {"an object that was created again is not changed by a patch for the former one",
			func(d *drained, count int, r memapi.Request) error {
				if count == 0 && isPatch(r, "/two") {
					d.api.Edit(houses, "default", "two", func(house map[string]any) {
						of := &unstructured.Unstructured{Object: house}
						of.SetUID("another")
						of.SetAnnotations(nil)
						of.SetFinalizers(nil)
					})
				}
				return nil
			}, nil},
		"interrupted": {"a drain whose connection breaks can be repeated",
			func(_ *drained, _ int, r memapi.Request) error {
				if strings.HasSuffix(r.Path, "/two") || strings.Contains(r.Path, "/configmaps") {
					return memapi.ErrCut
				}
				return nil
			}, []string{"House.test.example.org default/two: finalizer", "configmaps: children"}},
	} {
		t.Run(name, func(t *testing.T) {
			inDrained(t, kopf.Settings{}, func(d *drained) {
				var mu sync.Mutex
				way, patches := d.api.Connect(), map[string]int{}
				way.Before = func(_ context.Context, r memapi.Request) error {
					mu.Lock()
					defer mu.Unlock()
					err := c.before(d, patches[r.Path], r)
					if r.Verb == "patch" {
						patches[r.Path]++
					}
					return err
				}
				requireItems(t, d.drain(way, nil), c.left...)
				requireItems(t, d.drain(nil, nil))
				if name == "conflict" {
					if got := d.house("one").GetFinalizers(); len(got) != 2 || got[0] != "new.example.com/finalizer" {
						t.Errorf("%s: got %v", c.reason, got)
					}
					return
				}
				if name == "recreated" {
					return // the object is another one
				}
				d.requireNothing("drain.example.com")
			})
		})
	}
}

// TestDrainOfUnlistedKinds shows that a kind that cannot be searched for children is left only if it may have some. A
// kind without a right to list it is reported otherwise.
func TestDrainOfUnlistedKinds(t *testing.T) {
	const note = "they were not searched for marks of children: "
	for name, c := range map[string]struct {
		reason, kind string
		code         int
		left         []string
		note         string
	}{
		"forbidden": {"a forbidden kind is reported if the operator has no children of it", "gadgets",
			http.StatusForbidden, nil, note + "gadgets.test.example.org"},
		"forbidden with children": {"a forbidden kind is left if the operator has children of it", "configmaps",
			http.StatusForbidden, []string{"configmaps: children"}, ""},
		"absent": {"a kind that is gone is reported", "gadgets", http.StatusNotFound, nil,
			note + "gadgets.test.example.org"},
		"without lists": {"a kind without lists is reported", "gadgets", http.StatusMethodNotAllowed, nil,
			note + "gadgets.test.example.org"},
		"invalid": {"a kind that cannot be listed for another reason is left", "gadgets",
			http.StatusUnprocessableEntity, []string{"gadgets.test.example.org: children"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inDrained(t, kopf.Settings{}, func(d *drained) {
				d.api.Install(memapi.Resource{
					Group: "test.example.org", Version: "v1", Kind: "Gadget", Plural: "gadgets", Namespaced: true,
				})
				reasons := map[int]string{
					http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound",
					http.StatusMethodNotAllowed: "MethodNotAllowed", http.StatusUnprocessableEntity: "Invalid",
				}
				way := d.api.Connect()
				way.Before = func(_ context.Context, r memapi.Request) error {
					if r.Verb == "list" && strings.HasSuffix(r.Path, "/"+c.kind) {
						return memapi.NewRefusal(c.code, "reason", reasons[c.code])
					}
					return nil
				}
				report := d.drain(way, nil)
				requireItems(t, report, c.left...)
				if c.note == "" && len(report.Notes) > 0 ||
					c.note != "" && (len(report.Notes) != 1 || !strings.Contains(report.Notes[0], c.note)) {
					t.Errorf("%s: want the note %q, got %v", c.reason, c.note, report.Notes)
				}
			})
		})
	}
}

// TestDrainBesideTheOperator shows that things that are stored again during the drain are reported.
func TestDrainBesideTheOperator(t *testing.T) {
	inDrained(t, kopf.Settings{}, func(d *drained) {
		way := d.api.Connect()
		way.After = func(_ context.Context, r memapi.Request) error {
			if r.Verb == "patch" && strings.HasSuffix(r.Path, "/two") {
				d.api.Edit(houses, "default", "two", func(house map[string]any) {
					(&unstructured.Unstructured{Object: house}).SetFinalizers([]string{"drain.example.com/finalizer"})
				})
			}
			return nil
		}
		requireItems(t, d.drain(way, nil), "House.test.example.org default/two: finalizer: it was stored again")
	})
}

// TestDrainOfADatabase shows that records outside of the objects are removed, too, and that a check keeps them. An
// error of the storage leaves the object.
func TestDrainOfADatabase(t *testing.T) {
	kept := newRecordStore()
	refuse := func(err error) {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		kept.flushErr = err
	}
	inDrained(t, kopf.Settings{Persistence: kopf.PersistenceSettings{ProgressStorage: kept}}, func(d *drained) {
		rows := kept.keys()
		if len(rows) == 0 {
			t.Fatal("the operator has no records")
		}
		d.drain(nil, func(one *draining.Drain) { one.Check = true })
		if diff := cmp.Diff(rows, kept.keys()); diff != "" {
			t.Errorf("a check keeps all records (-want, +got):\n%s", diff)
		}
		// The set-up writes a trial record, so the error begins after it.
		report := d.drain(nil, func(*draining.Drain) { refuse(errors.New("no database")) })
		requireItems(t, report, "no database", "no database")
		refuse(nil)
		requireItems(t, d.drain(nil, nil))
		if got := kept.keys(); len(got) > 0 {
			t.Errorf("no record is left: got %v", got)
		}
		d.requireNothing("drain.example.com")
	})
}

// TestDrainInPages shows that a drain of many objects lists them in pages, and requests only their metadata.
func TestDrainInPages(t *testing.T) {
	inDrained(t, kopf.Settings{}, func(d *drained) {
		for i := range 600 {
			one := plainHouse(fmt.Sprintf("many-%d", i))
			(&unstructured.Unstructured{Object: one}).SetUID("u")
			(&unstructured.Unstructured{Object: one}).SetFinalizers([]string{"drain.example.com/finalizer"})
			d.api.Put(houses, one)
		}
		way := d.api.Connect()
		requireItems(t, d.drain(way, nil))
		lists, gets := 0, 0
		for _, r := range way.Requests() {
			if strings.Contains(r.Path, "/houses") && r.Verb == "list" {
				lists++
			} else if r.Verb == "get" && strings.Contains(r.Path, "/houses/") {
				gets++
			}
		}
		// One search is for the drain and one for its verification, each with two pages, and one for children.
		if lists != 5 || gets > 0 {
			t.Errorf("want 5 lists and no single reads: got %d and %d", lists, gets)
		}
	})
}

// TestDrainKilledAnywhere shows that a drain that is killed before any of its requests can be repeated.
func TestDrainKilledAnywhere(t *testing.T) {
	for last, isCut := 1, true; isCut; last++ {
		isCut = false
		inDrained(t, kopf.Settings{}, func(d *drained) {
			var mu sync.Mutex
			way, count := d.api.Connect(), 0
			way.Before = func(context.Context, memapi.Request) error {
				mu.Lock()
				defer mu.Unlock()
				if count++; count == last {
					isCut = true
					way.Cut()
				}
				return nil
			}
			_, _ = d.tryDrain(way, nil) // it can fail before it changes anything
			requireItems(t, d.drain(nil, nil))
			d.requireNothing("drain.example.com")
		})
	}
}

// panickingStore is a storage whose Purge panics.
type panickingStore struct{ *recordStore }

func (p panickingStore) Purge(patch, body map[string]any, id string) {
	if p.recordStore.flushErr != nil {
		panic(p.recordStore.flushErr)
	}
	p.recordStore.Purge(patch, body, id)
}

// TestDrainWithAStorageThatPanics shows that a panic of a storage is an error of the object, which is left.
func TestDrainWithAStorageThatPanics(t *testing.T) {
	kept := panickingStore{newRecordStore()}
	inDrained(t, kopf.Settings{Persistence: kopf.PersistenceSettings{ProgressStorage: kept}}, func(d *drained) {
		report := d.drain(nil, func(*draining.Drain) { kept.flushErr = errors.New("a mistake") })
		requireItems(t, report, "panic: a mistake", "panic: a mistake")
		if got := d.house("one").GetFinalizers(); len(got) != 2 {
			t.Errorf("the object stays as it is: got %v", got)
		}
	})
}
