package configurations_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// countGaps counts the writes that leave the entry out after it was there.
func countGaps(server *memapi.Server, entry string) *int {
	count, seen := 0, false
	server.SetAdmission(memapi.Admission{Mutate: func(of memapi.Resource, object map[string]any) {
		if of.Kind != validatingResource.Kind {
			return
		}
		entries, _ := object["webhooks"].([]any)
		there := slices.ContainsFunc(entries, func(one any) bool {
			return one.(map[string]any)["name"] == entry
		})
		seen = seen || there
		if seen && !there {
			count++
		}
	}})
	return &count
}

func TestRollingUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		update func(t *testing.T, server *memapi.Server)
	}{
		"OneByOne": {"the entry stays if the new process writes before the old one leaves",
			func(t *testing.T, server *memapi.Server) {
				before := start(t, server, options("old", 1), validatingHook)
				after := start(t, server, options("new", 2), validatingHook, persistentHook)
				before.stop(t)
				requireEntries(t, "the old process must not remove the entries", server, "v.ops.example.org",
					"p.ops.example.org")
				after.stop(t)
			}},
		"OldWritesLast": {"the entries of the youngest process win, as it has the new version",
			func(t *testing.T, server *memapi.Server) {
				before := start(t, server, options("old", 1), validatingHook)
				after := start(t, server, options("new", 2), validatingHook, persistentHook)
				before.SetHooks([]configurations.Hook{validatingHook}) // as after a new CRD
				synctest.Wait()
				requireEntries(t, "the new process must write again", server, "v.ops.example.org", "p.ops.example.org")
				if n := after.writes(); n != 2 {
					t.Errorf("the new process must write again once: got %d writes, with the first one", n)
				}
				before.stop(t)
				after.stop(t)
			}},
		"Killed": {"a new process continues with the entry of a killed one", func(t *testing.T, server *memapi.Server) {
			before := start(t, server, options("old", 1), validatingHook)
			before.connection.Cut()
			after := start(t, server, options("new", 2), validatingHook)
			before.cancel()
			<-before.runResult
			after.stop(t)
		}},
		"FewerReplicas": {"the remaining process takes over the entry", func(t *testing.T, server *memapi.Server) {
			stays := start(t, server, options("stays", 1), validatingHook)
			goes := start(t, server, options("goes", 2), validatingHook)
			goes.stop(t)
			requireEntries(t, "the entry must stay for the remaining process", server, "v.ops.example.org")
			stays.stop(t)
		}},
		"Once": {"a single process removes its entry at the end", func(t *testing.T, server *memapi.Server) {
			p := start(t, server, options("a", 1), validatingHook)
			p.stop(t)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := cluster()
				count := countGaps(server, "v.ops.example.org")
				tc.update(t, server)
				if got := names(t, server, validatingResource); slices.Contains(got, "v.ops.example.org") {
					t.Errorf("the last process must remove the entries: got %v", got)
				}
				if *count != 1 {
					t.Errorf("%s: the entry was removed %d times, want once", tc.reason, *count)
				}
			})
		})
	}
}

// TestTakenOverWhileLeaving shows that a leaving process does not remove the entries of a process that takes over
// meanwhile. All processes are one field manager, so an apply without a condition would remove them.
func TestTakenOverWhileLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := prepare(t, server, options("leaves", 1))
		p.connection.Before = func(_ context.Context, r memapi.Request) error {
			if r.Verb == "patch" && !strings.Contains(string(r.Body), "webhooks") {
				server.Edit(validatingResource, "", "shared", func(object map[string]any) {
					annotations := object["metadata"].(map[string]any)["annotations"].(map[string]any)
					annotations["ops.example.org/webhooks"] = markOf(t, "comes", 2, "v.ops.example.org")
				})
			}
			return nil
		}
		p.run(t, validatingHook)
		p.stop(t)
		requireEntries(t, "the entry of another process must stay", server, "v.ops.example.org")
	})
}

// TestHandOverEnds shows that a process that exits serves while it waits for another one, but not longer than the
// hand-over takes.
func TestHandOverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, cluster(), options("a", 1), validatingHook)
		began := time.Now()
		p.stop(t)
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("want a wait of one to two seconds for a successor, got %s", took)
		}
	})
}

// TestEndOfTheHandOver shows that a process that exits stops waiting as soon as another one has taken over, and that it
// waits if it cannot find out.
func TestEndOfTheHandOver(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		unknown  bool
		min, max time.Duration
	}{
		"Successor": {"a process that takes over ends the wait", false, 0, 5 * time.Second},
		"Unknown":   {"a process may not have taken over if that is unknown", true, time.Minute, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := cluster()
				stays := start(t, server, options("stays", 1), validatingHook)
				o := options("goes", 2)
				o.HandOver = time.Minute
				goes := prepare(t, server, o)
				var isLeaving, hasAnnounced atomic.Bool
				goes.connection.Before = func(_ context.Context, r memapi.Request) error {
					if r.Verb == "get" && hasAnnounced.Load() {
						return memapi.NewRefusal(http.StatusServiceUnavailable)
					}
					if r.Verb == "patch" && isLeaving.Load() {
						hasAnnounced.Store(tc.unknown)
					}
					return nil
				}
				goes.run(t, validatingHook)
				isLeaving.Store(true)
				began := time.Now()
				goes.stop(t)
				if took := time.Since(began); took < tc.min || took > tc.max {
					t.Errorf("%s: the exit took %s, want %s to %s", tc.reason, took, tc.min, tc.max)
				}
				stays.stop(t)
			})
		})
	}
}

// TestLeaveEnds shows that an API server that does not answer does not block the exit.
func TestLeaveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := prepare(t, cluster(), options("a", 1))
		var hangs atomic.Bool
		p.connection.Before = func(ctx context.Context, _ memapi.Request) error {
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		p.run(t, validatingHook)
		hangs.Store(true)
		began := time.Now()
		p.stop(t)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the exit took %s", took)
		}
	})
}

func TestTwoOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validatingHook)
		o := options("b", 2)
		o.Operator, o.Form.Suffix = "example.org", "example.org"
		other := start(t, server, o, validatingHook)
		requireEntries(t, "both operators must have their entries", server, "v.ops.example.org", "v.example.org")
		p.writes()
		other.stop(t)
		requireEntries(t, "the entries of the other operator must stay", server, "v.ops.example.org")
		if n := p.writes(); n > 2 {
			t.Errorf("want at most two writes without effect, one after each change: got %d", n)
		}
		p.stop(t)
	})
}

// TestNoHandOver shows that a process without a time for the hand-over removes its entries at once, by one write.
func TestNoHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, o := cluster(), options("a", 1)
		o.HandOver = 0
		p := start(t, server, o, validatingHook)
		p.writes()
		p.stop(t)
		requireEntries(t, "the entries are removed", server, []string{}...)
		if n := p.writes(); n != 1 {
			t.Errorf("a process that does not wait must not announce its exit: want one write, got %d", n)
		}
	})
}
