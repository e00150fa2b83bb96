package reconcilers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// openWatches counts the open watches of a resource, and the requests that write.
type openWatches struct {
	next   http.RoundTripper
	plural string
	open   atomic.Int64
	writes atomic.Int64
}

func (w *openWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		w.writes.Add(1)
	}
	response, err := w.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") == "true" && strings.HasSuffix(r.URL.Path, "/"+w.plural) {
		w.open.Add(1)
		response.Body = &countedBody{ReadCloser: response.Body, onClose: sync.OnceFunc(func() { w.open.Add(-1) })}
	}
	return response, err
}

type countedBody struct {
	io.ReadCloser

	onClose func()
}

func (c *countedBody) Close() error {
	c.onClose()
	return c.ReadCloser.Close()
}

func keysOf(index *indexes.ObjectIndex) string {
	var found []string
	for _, key := range index.Keys() {
		found = append(found, fmt.Sprint(key))
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

// TestIndicesInEveryReplica shows that a paused replica watches only the indexed kinds, each with one watch at any
// time.
func TestIndicesInEveryReplica(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("Secret", "s0")
		p.merge("Secret", "s0", `{"metadata":{"finalizers":["coming.example.org/finalizer"]}}`)
		index, filling := byName()
		gate := &reconcilers.Gate{}
		gate.Set(true)
		way := &openWatches{next: server, plural: "secrets"}
		others := &openWatches{next: way, plural: "configmaps"}
		var calls, filled atomic.Int64
		stop := operateAll(t, others, reconcilers.Options{
			Gate: gate, RunInEveryReplica: true, OnIndicesFilled: func() { filled.Add(1) },
		}, registrationFor(t, "secrets", filling), registrationFor(t, "secrets", counting("h", cause.Create, &calls)),
			registrationFor(t, "configmaps", counting("c", cause.Create, &calls)))
		defer stop()
		want := func(when, keys string, handled int64) {
			t.Helper()
			time.Sleep(10 * time.Second)
			if got := keysOf(index); got != keys || calls.Load() != handled || filled.Load() != 1 {
				t.Errorf("%s: %q in the index, %d calls, %d times filled", when, got, calls.Load(), filled.Load())
			}
			if n := way.open.Load(); n != 1 {
				t.Errorf("%s: %d watches of the indexed kind", when, n)
			}
		}
		want("paused from the start", "s0", 0)
		p.create("Secret", "s1")
		want("after a creation in the pause", "s0 s1", 0)
		if n, w := others.open.Load(), way.writes.Load(); n != 0 || w != 0 {
			t.Errorf("%d watches of other kinds, %d writes, want none", n, w)
		}
		gate.Set(false)
		want("resumed", "s0 s1", 2)
		p.remove("Secret", "s1")
		want("after a deletion", "s0", 2)
		gate.Set(true)
		want("paused again", "s0", 2)
		p.create("Secret", "s2")
		want("after a creation in the second pause", "s0 s2", 2)
		gate.Set(false)
		want("resumed again", "s0 s2", 3)
	})
}

// TestIndicesWhileListing shows that the indices of a standby process stay up to date while the listing after a pause
// takes its time.
func TestIndicesWhileListing(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("Secret", "s0")
		p.create("ConfigMap", "c")
		index, filling := byName()
		gate := &reconcilers.Gate{}
		gate.Set(true)
		lag := &atomic.Int64{}
		began := make(chan string, 10)
		stop := operateAll(t, delayLists(server, "secrets", func() time.Duration { return time.Duration(lag.Load()) }),
			reconcilers.Options{Gate: gate, RunInEveryReplica: true}, registrationFor(t, "secrets", filling),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create,
				Call: func(context.Context, *handlers.Invocation) error {
					began <- keysOf(index)
					return nil
				}}))
		defer stop()
		time.Sleep(5 * time.Second)
		lag.Store(int64(time.Minute))
		gate.Set(false)
		time.Sleep(30 * time.Second)
		p.create("Secret", "s1")
		p.remove("Secret", "s0")
		time.Sleep(time.Second)
		if got := keysOf(index); got != "s1" || len(began) > 0 {
			t.Errorf("during the listing: %q in the index, %d calls, want s1 and 0", got, len(began))
		}
		time.Sleep(2 * time.Minute)
		if got := keysOf(index); got != "s1" || len(began) != 1 || <-began != "s1" {
			t.Errorf("after the listing: %q in the index, want s1 and one call", got)
		}
	})
}

// TestReplicaWithoutIndices shows for which kinds a replica waits: those that fail to list, but not those that are
// forbidden or removed. A pause makes no difference.
func TestReplicaWithoutIndices(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for _, paused := range []bool{false, true} {
		for name, tc := range map[string]struct {
			code  int
			gone  bool
			fills bool
		}{"Forbidden": {403, false, true}, "Broken": {500, false, false}, "BrokenAndGone": {500, true, true}} {
			t.Run(fmt.Sprint(name, paused), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := memapi.New()
					server.Install(
						memapi.Resource{
							Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true,
						},
					)
					_, filling := byName()
					gate := &reconcilers.Gate{}
					gate.Set(paused)
					var filled atomic.Int64
					stop := operateAll(t, unavailable(server, "things", tc.code), reconcilers.Options{
						Gate: gate, RunInEveryReplica: true, OnIndicesFilled: func() { filled.Add(1) },
					}, registrationFor(t, "things.v1.x.io", filling))
					defer stop()
					time.Sleep(time.Minute)
					if tc.gone {
						server.Remove("x.io", "things")
					}
					time.Sleep(time.Hour)
					if fills := filled.Load() == 1; fills != tc.fills {
						t.Errorf("Filled was called %d times, want a call only for forbidden or removed kinds",
							filled.Load())
					}
				})
			})
		}
	}
}

// TestForgettingInStandby shows that objects that are deleted while the process is on standby are forgotten.
func TestForgettingInStandby(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.createMany("Secret", "s", 3)
		_, filling := byName()
		gate := &reconcilers.Gate{}
		gate.Set(true)
		lag := &atomic.Int64{}
		var forgot atomic.Int64
		stop := operateAll(t, delayLists(server, "secrets", func() time.Duration { return time.Duration(lag.Load()) }),
			reconcilers.Options{Gate: gate, RunInEveryReplica: true, OnGone: func(types.UID) { forgot.Add(1) }},
			registrationFor(t, "secrets", filling))
		defer stop()
		time.Sleep(time.Minute)
		p.remove("Secret", "s-0")
		time.Sleep(time.Minute)
		if forgot.Load() != 1 {
			t.Errorf("on standby: %d forgotten, want 1", forgot.Load())
		}
		gate.Set(false)
		time.Sleep(time.Minute)
		lag.Store(int64(time.Minute))
		gate.Set(true)
		time.Sleep(time.Second)
		p.remove("Secret", "s-1")
		time.Sleep(2 * time.Minute)
		if forgot.Load() != 2 {
			t.Errorf("between two watches: %d forgotten, want 2", forgot.Load())
		}
	})
}

// TestBeginAndEndInEveryReplica shows that Begin and End are called once in each process, End after all handlers.
func TestBeginAndEndInEveryReplica(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint(paused), func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
				p.create("Secret", "s0")
				index, filling := byName()
				gate := &reconcilers.Gate{}
				gate.Set(paused)
				j := &journal{startTime: time.Now()}
				h := &handlers.Handler{ID: "h", Reason: cause.Create, Call: func(
					ctx context.Context, _ *handlers.Invocation,
				) error {
					<-ctx.Done()
					j.add("handled")
					return nil
				}}
				changed := reconcilers.Options{
					Gate: gate, RunInEveryReplica: true, OnIndicesFilled: func() { j.add("filled") },
					End: func(context.Context) error { j.add("end"); return nil },
				}
				o := changed
				all := []reconcilers.Registration{registrationFor(t, "secrets", filling),
					registrationFor(t, "secrets", h)}
				complete(&changed, all...)
				o.Begin = func(context.Context) (reconcilers.Options, error) {
					time.Sleep(time.Minute)
					j.add("begin with " + keysOf(index))
					return changed, nil
				}
				stop := operateAll(t, server, o, all...)
				time.Sleep(2 * time.Minute)
				stop()
				want := "1m0s begin with ; 1m0s filled; 2m2s handled; 2m2s end"
				if paused {
					want = "1m0s begin with ; 1m2s filled; 2m0s end"
				}
				if got := j.String(); got != want {
					t.Errorf("want %q, got %q", want, got)
				}
			})
		})
	}
}

// TestIndexByRangeWithoutRanges shows that without sharding, every replica fills an index with ByRange, because all
// objects are in its ranges.
func TestIndexByRangeWithoutRanges(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("Secret", "s0")
		index, filling := byName()
		filling.Index.ByRange = true
		gate := &reconcilers.Gate{}
		gate.Set(true)
		stop := operateAll(t, server, reconcilers.Options{Gate: gate, RunInEveryReplica: true},
			registrationFor(t, "secrets", filling))
		defer stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := keysOf(index); got != "s0" {
			t.Errorf("a paused replica without sharding must fill the index: got %q, want s0", got)
		}
	})
}
