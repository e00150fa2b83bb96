package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

type (
	houseSelection = kopf.Selection[*kopf.Unstructured]
	houseHandler   = kopf.ChangeFunc[*kopf.Unstructured]
)

// renamedHandlers has the handlers of a former version, which wait for longer than that version runs, and of the
// present version, which succeed. Both record their calls as "id attempt".
type renamedHandlers struct{ calls []string }

func (r *renamedHandlers) failLater(_ context.Context, c *houseChange) error {
	r.calls = append(r.calls, fmt.Sprint(c.ID, " ", c.Retry))
	return kopf.Temporary(errors.New("not yet"), 8*time.Minute)
}

func (r *renamedHandlers) returnResult(_ context.Context, c *houseChange) error {
	r.calls = append(r.calls, fmt.Sprint(c.ID, " ", c.Retry))
	c.SetResult("of " + c.ID)
	return nil
}

// runVersion starts an operator, waits until the due handlers have been called, and stops the operator.
func (r *renamedHandlers) runVersion(h ensureFixture, given kopf.Settings, register func(s houseSelection)) {
	h.t.Helper()
	_, stop := h.runWith(given, register)
	h.settle()
	stop()
}

// recordIDs returns the ids of the annotations that hold progress records.
func (h ensureFixture) recordIDs() (ids []string) {
	for name, value := range h.house().GetAnnotations() {
		if _, id, _ := strings.Cut(name, "/"); strings.HasPrefix(value, `{"started"`) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// storedResults returns the status of the house, which holds the results of handlers.
func (h ensureFixture) storedResults() map[string]any {
	status, _ := h.house().Object["status"].(map[string]any)
	return status
}

// withSub returns a handler that declares one sub-handler.
func withSub(id string, fn houseHandler, former ...string) houseHandler {
	return func(_ context.Context, c *houseChange) error {
		if len(former) > 0 {
			c.Sub(id, fn, kopf.FormerIDs(former...))
		} else {
			c.Sub(id, fn)
		}
		return nil
	}
}

// TestFormerIDs shows that handlers take over the records of their former ids (deviation D-former-ids).
func TestFormerIDs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	asKopf := kopf.AsKopf()
	for name, tc := range map[string]struct {
		reason                          string
		settings                        kopf.Settings
		registerFormer, registerPresent func(s houseSelection, r *renamedHandlers)
		wantRecord                      []string // of the former version
		wantCalls                       []string
		want                            map[string]any
	}{
		"creation": {
			"the attempts under the former id are counted on", kopf.Settings{},
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("old", r.failLater) },
			func(s houseSelection, r *renamedHandlers) {
				s.OnCreate("new", r.returnResult, kopf.FormerIDs("older", "old"))
			},
			[]string{"old"}, []string{"old 0", "new 1"}, map[string]any{"new": "of new"},
		},
		"several reasons": {
			"one record serves all reasons of an id", kopf.Settings{},
			func(s houseSelection, r *renamedHandlers) { s.On("old", nonDeleteReasons, r.failLater) },
			func(s houseSelection, r *renamedHandlers) {
				s.OnUpdate("new", r.returnResult, kopf.FormerIDs("old"))
				s.OnCreate("new", r.returnResult)
			},
			[]string{"old"}, []string{"old 0", "new 1"}, map[string]any{"new": "of new"},
		},
		"field": {
			"the former id is given without the field, like the id", kopf.Settings{},
			func(s houseSelection, r *renamedHandlers) { s.OnField("old", "spec.rooms", r.failLater) },
			func(s houseSelection, r *renamedHandlers) {
				s.OnField("new", "spec.rooms", r.returnResult, kopf.FormerIDs("old"))
			},
			[]string{"old.spec.rooms"}, []string{"old/spec.rooms 0", "new/spec.rooms 1"},
			map[string]any{"new/spec.rooms": "of new/spec.rooms"},
		},
		"sub-handler of a renamed handler": {
			"a renamed handler takes over the records of its sub-handlers", kopf.Settings{},
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("old", withSub("part", r.failLater)) },
			func(s houseSelection, r *renamedHandlers) {
				s.OnCreate("new", withSub("part", r.returnResult), kopf.FormerIDs("old"))
			},
			[]string{"old", "old.part"}, []string{"old/part 0", "new/part 1"},
			map[string]any{"new/part": "of new/part"},
		},
		"renamed sub-handler": {
			"the former id of a sub-handler is given without the id of the handler", kopf.Settings{},
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("fn", withSub("old", r.failLater)) },
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("fn", withSub("new", r.returnResult, "old")) },
			[]string{"fn", "fn.old"}, []string{"fn/old 0", "fn/new 1"}, map[string]any{"fn/new": "of fn/new"},
		},
		"renamed sub-handler of a renamed handler": {
			"a handler and its sub-handler can both be renamed", kopf.Settings{},
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("old", withSub("old", r.failLater)) },
			func(s houseSelection, r *renamedHandlers) {
				s.OnCreate("new", withSub("new", r.returnResult, "old"), kopf.FormerIDs("old"))
			},
			[]string{"old", "old.old"}, []string{"old/old 0", "new/new 1"}, map[string]any{"new/new": "of new/new"},
		},
		"sub-handler of a renamed sub-handler": {
			"a renamed sub-handler takes over the records of its own sub-handlers", kopf.Settings{},
			func(s houseSelection, r *renamedHandlers) {
				s.OnCreate("fn", withSub("old", withSub("part", r.failLater)))
			},
			func(s houseSelection, r *renamedHandlers) {
				s.OnCreate("fn", withSub("new", withSub("part", r.returnResult), "old"))
			},
			[]string{"fn", "fn.old", "fn.old.part"}, []string{"fn/old/part 0", "fn/new/part 1"},
			map[string]any{"fn/new/part": "of fn/new/part"},
		},
		"as Kopf": {
			"records in Kopf's annotations are taken over", asKopf,
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("old", r.failLater) },
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("new", r.returnResult, kopf.FormerIDs("old")) },
			[]string{"old"}, []string{"old 0", "new 1"}, map[string]any{"new": "of new"},
		},
		"sub-handlers as Kopf": {
			"separate records of sub-handlers in Kopf's annotations are taken over", asKopf,
			func(s houseSelection, r *renamedHandlers) { s.OnCreate("old", withSub("old", r.failLater)) },
			func(s houseSelection, r *renamedHandlers) {
				s.OnCreate("new", withSub("new", r.returnResult, "old"), kopf.FormerIDs("old"))
			},
			[]string{"old", "old.old"}, []string{"old/old 0", "new/new 1"}, map[string]any{"new/new": "of new/new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var r renamedHandlers
				h.createHouse()
				r.runVersion(h, tc.settings, func(s houseSelection) { tc.registerFormer(s, &r) })
				if d := cmp.Diff(tc.wantRecord, h.recordIDs()); d != "" {
					t.Fatalf("the former records: -want, +got:\n%s", d)
				}
				r.runVersion(h, tc.settings, func(s houseSelection) { tc.registerPresent(s, &r) })
				if d := cmp.Diff(tc.wantCalls, r.calls); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				if records := h.recordIDs(); records != nil {
					t.Errorf("records remain: %v", records)
				}
				if d := cmp.Diff(tc.want, h.storedResults()); d != "" {
					t.Errorf("%s: results: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// addRecords gives the house one record for each id, with the given number of retries.
func (h ensureFixture) addRecords(retries map[string]int64) {
	h.t.Helper()
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		patch := map[string]any{}
		for id, count := range retries {
			record := progress.Record{Purpose: ptr.To("create"), Retries: &count, Started: ptr.To(time.Now())}
			storage := progress.Annotations{Prefix: "test.example.org", WithoutV1: true}
			if err := storage.Store(patch, house, id, record); err != nil {
				h.t.Error(err)
			}
		}
		metadata, _ := house["metadata"].(map[string]any)
		metadata["annotations"] = patch["metadata"].(map[string]any)["annotations"]
	})
}

// TestFormerIDsBesidePresentOnes shows that the present record counts, and that the next write removes the former one.
func TestFormerIDsBesidePresentOnes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		handlerFails bool
		want         []string
		wantRecords  []string
	}{
		"success": {"the end of the change removes both", false, []string{"new 5"}, nil},
		"failure": {"the write of the present record removes the former one", true, []string{"new 5"}, []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var r renamedHandlers
				h.createHouse()
				h.addRecords(map[string]int64{"old": 2, "new": 5})
				fn := r.returnResult
				if tc.handlerFails {
					fn = r.failLater
				}
				r.runVersion(h, kopf.Settings{},
					func(s houseSelection) { s.OnCreate("new", fn, kopf.FormerIDs("old")) })
				if d := cmp.Diff(tc.want, r.calls); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				if d := cmp.Diff(tc.wantRecords, h.recordIDs()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestFormerIDsOfFinishedSubHandlers shows that a sub-handler that succeeded under a former id is not called again, and
// that the sub-handlers after it run.
func TestFormerIDsOfFinishedSubHandlers(t *testing.T) {
	for name, given := range map[string]kopf.Settings{"own records": {}, "as Kopf": kopf.AsKopf()} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				var r renamedHandlers
				h.createHouse()
				r.runVersion(h, given, func(s houseSelection) {
					s.OnCreate("old", func(_ context.Context, c *houseChange) error {
						c.Sub("first", r.returnResult)
						c.Sub("second", r.failLater, kopf.After("first"))
						return nil
					})
				})
				var outcome kopf.SubOutcome
				r.runVersion(h, given, func(s houseSelection) {
					s.OnCreate("new", func(ctx context.Context, c *houseChange) error {
						c.Sub("begin", r.returnResult, kopf.FormerIDs("first"))
						outcome = c.Outcome("begin")
						c.Sub("end", r.returnResult, kopf.After("begin"), kopf.FormerIDs("second"))
						return c.RunSubs(ctx)
					}, kopf.FormerIDs("old"))
				})
				if d := cmp.Diff([]string{"old/first 0", "old/second 0", "new/end 1"}, r.calls); d != "" {
					t.Errorf("calls: -want, +got:\n%s", d)
				}
				if outcome.State != kopf.SubSucceeded {
					t.Errorf("the outcome under the former id must be a success: %+v", outcome)
				}
				if records := h.recordIDs(); records != nil {
					t.Errorf("records remain: %v", records)
				}
			})
		})
	}
}

// TestFormerIDsOfFinishedHandlers shows that an edit after a success under a former id is an update: D-handling-config.
func TestFormerIDsOfFinishedHandlers(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var r renamedHandlers
		h.createHouse()
		r.runVersion(h, kopf.Settings{}, func(s houseSelection) {
			s.OnCreate("old", r.returnResult)
			s.OnCreate("wait", r.failLater)
		})
		h.changeRooms("edited")
		r.runVersion(h, kopf.Settings{}, func(s houseSelection) {
			s.OnCreate("new", r.returnResult, kopf.FormerIDs("old"))
			s.OnCreate("wait", r.returnResult)
			s.OnUpdate("sync", r.returnResult)
		})
		if d := cmp.Diff([]string{"old 0", "wait 0", "wait 1", "sync 0"}, r.calls); d != "" {
			t.Errorf("calls: -want, +got:\n%s", d)
		}
		if records := h.recordIDs(); records != nil {
			t.Errorf("records remain: %v", records)
		}
	})
}

// TestFormerIDsInTheStatus shows that records in the status, where early versions of Kopf kept them, are taken over.
func TestFormerIDsInTheStatus(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var r renamedHandlers
		h.createHouse()
		h.api.Edit(houses, "default", "home", func(house map[string]any) {
			record := map[string]any{"purpose": "create", "retries": int64(2)}
			records := map[string]any{
				"old":      record,
				"old/part": map[string]any{"purpose": "create", "retries": int64(4)},
			}
			house["status"] = map[string]any{"kopf": map[string]any{"progress": records}}
			record["subrefs"] = []any{"old/part"}
		})
		r.runVersion(h, kopf.AsKopf(), func(s houseSelection) {
			s.OnCreate("new", withSub("part", r.returnResult), kopf.FormerIDs("old"))
		})
		if d := cmp.Diff([]string{"new/part 4"}, r.calls); d != "" {
			t.Errorf("calls: -want, +got:\n%s", d)
		}
		kept, _, _ := unstructured.NestedMap(h.storedResults(), "kopf", "progress")
		if records := h.recordIDs(); records != nil || len(kept) > 0 {
			t.Errorf("records remain: %v and in the status %v", records, kept)
		}
	})
}

// TestFormerIDsOfResults shows that a former result is read under the present id until it is replaced.
func TestFormerIDsOfResults(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var r renamedHandlers
		h.createHouse()
		r.runVersion(h, kopf.Settings{}, func(s houseSelection) { s.OnCreate("old", r.returnResult) })
		var mu sync.Mutex
		read := map[string]string{}
		readBy := func(family string, c kopf.Results) (err error) {
			mu.Lock()
			defer mu.Unlock()
			read[family], err = kopf.Result[string](c, "new")
			return err
		}
		r.runVersion(h, kopf.Settings{}, func(s houseSelection) {
			s.OnCreate("new", r.returnResult, kopf.FormerIDs("old"))
			s.OnResume("resume", func(_ context.Context, c *houseChange) error { return readBy("resume", c) })
			s.Daemon("daemon", func(_ context.Context, task *kopf.Task[*kopf.Unstructured]) error {
				return readBy("daemon", task)
			})
			s.OnEvent("event", func(_ context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
				return readBy("event", e)
			})
		})
		want := map[string]string{"resume": "of old", "daemon": "of old", "event": "of old"}
		if d := cmp.Diff(want, read); d != "" {
			t.Errorf("the former result by families of handlers: -want, +got:\n%s", d)
		}
		r.runVersion(h, kopf.Settings{}, func(s houseSelection) {
			s.Timer("tick", time.Minute, func(_ context.Context, task *kopf.Task[*kopf.Unstructured]) error {
				task.SetResult("of tick")
				return nil
			}, kopf.FormerIDs("old"))
		})
		if d := cmp.Diff(map[string]any{"tick": "of tick"}, h.storedResults()); d != "" {
			t.Errorf("a new result must replace the former one: -want, +got:\n%s", d)
		}
	})
}
