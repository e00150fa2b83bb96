package configurations_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// gaps counts the writes after which the entry is not there, from when it was there first.
func gaps(server *memapi.Server, entry string) *int {
	count, seen := 0, false
	server.Admit(memapi.Admission{Mutate: func(of memapi.Resource, object map[string]any) {
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
		play   func(t *testing.T, server *memapi.Server)
	}{
		"OneByOne": {"the new one has written when the old one goes", func(t *testing.T, server *memapi.Server) {
			before := start(t, server, options("old", 1), validate)
			after := start(t, server, options("new", 2), validate, lasting)
			before.stop(t)
			want(t, "the old one is not the last writer", server, "v.ops.example.org", "p.ops.example.org")
			after.stop(t)
		}},
		"OldWritesLast": {"the youngest wins, as it is of the new version", func(t *testing.T, server *memapi.Server) {
			before := start(t, server, options("old", 1), validate)
			after := start(t, server, options("new", 2), validate, lasting)
			before.Serve([]configurations.Hook{validate}) // as a CRD has come
			synctest.Wait()
			want(t, "the new one writes anew", server, "v.ops.example.org", "p.ops.example.org")
			if n := after.writes(); n != 2 {
				t.Errorf("it does so once: got %d writes, with that of the beginning", n)
			}
			before.stop(t)
			after.stop(t)
		}},
		"Killed": {"the new one goes on with what is there", func(t *testing.T, server *memapi.Server) {
			before := start(t, server, options("old", 1), validate)
			before.connection.Cut()
			after := start(t, server, options("new", 2), validate)
			before.end()
			<-before.ended
			after.stop(t)
		}},
		"FewerReplicas": {"the one that stays takes over", func(t *testing.T, server *memapi.Server) {
			stays := start(t, server, options("stays", 1), validate)
			goes := start(t, server, options("goes", 2), validate)
			goes.stop(t)
			want(t, "it is told before", server, "v.ops.example.org")
			stays.stop(t)
		}},
		"Once": {"nobody else is there", func(t *testing.T, server *memapi.Server) {
			p := start(t, server, options("a", 1), validate)
			p.stop(t)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := cluster()
				count := gaps(server, "v.ops.example.org")
				tc.play(t, server)
				if got := names(t, server, validatingResource); slices.Contains(got, "v.ops.example.org") {
					t.Errorf("the last one takes the entries away: got %v", got)
				}
				if *count != 1 {
					t.Errorf("%s: the entry was taken away %d times, want once", tc.reason, *count)
				}
			})
		})
	}
}

// All processes are one field manager, so an apply without a condition would remove the entries of a process that takes
// over meanwhile.
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
		p.run(t, validate)
		p.stop(t)
		want(t, "another process is responsible for it", server, "v.ops.example.org")
	})
}

// A process that exits must serve while it waits for another one, but not for ever.
func TestHandOverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, cluster(), options("a", 1), validate)
		began := time.Now()
		p.stop(t)
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("nobody takes over: it took %s to end", took)
		}
	})
}

// An API server that does not answer must not hold the exit up for ever.
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
		p.run(t, validate)
		hangs.Store(true)
		began := time.Now()
		p.stop(t)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s to end", took)
		}
	})
}

func TestTwoOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validate)
		o := options("b", 2)
		o.Operator, o.Form.Suffix = "example.org", "example.org"
		other := start(t, server, o, validate)
		want(t, "both have their entries", server, "v.ops.example.org", "v.example.org")
		p.writes()
		other.stop(t)
		want(t, "one leaves those of the other", server, "v.ops.example.org")
		if n := p.writes(); n > 2 {
			t.Errorf("the other applies its own after each of two changes, to no effect: got %d writes", n)
		}
		p.stop(t)
	})
}
