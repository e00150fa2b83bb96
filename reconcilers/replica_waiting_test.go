package reconcilers_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestReplicaWhileKindsAreNotKnown shows that a removed kind is not waited for, even while the kinds of other selectors
// are unknown. If it is installed again, it is waited for like any other.
func TestReplicaWhileKindsAreNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, began := memapi.New(), time.Now()
		things := memapi.Resource{Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true}
		server.Install(things)
		server.Install(memapi.Resource{Group: "y.io", Version: "v1", Kind: "Other", Plural: "others", Namespaced: true})
		listable := began.Add(3 * time.Hour)
		way := unreachableUntil{
			server: interceptRequests(server, func(_ context.Context, r memapi.Request) int {
				if r.Resource.Plural == "things" && time.Now().Before(listable) {
					return 500
				}
				return 0
			}),
			paths: func(path string) bool { return strings.Contains(path, "y.io") }, until: began.Add(2 * time.Hour),
		}
		var reminder atomic.Value
		log := funcr.New(func(_, line string) {
			if strings.Contains(line, "Handlers wait until") {
				reminder.Store(line)
			}
		}, funcr.Options{})
		var filled atomic.Int64
		gate := &reconcilers.Gate{}
		gate.Set(true)
		_, ofThings := byName()
		_, ofOthers := byName()
		defer operateLogged(t, way, log, reconcilers.Options{
			Gate: gate, RunInEveryReplica: true, OnIndicesFilled: func() { filled.Add(1) },
		}, registrationFor(t, "things.v1.x.io", ofThings), registrationFor(t, "others.v1.y.io", ofOthers))()
		want := func(at time.Duration, when string, waits bool, fills int64) {
			t.Helper()
			time.Sleep(time.Until(began.Add(at)))
			line, _ := reminder.Load().(string)
			if strings.Contains(line, "things") != waits || filled.Load() != fills {
				t.Errorf("%s: %d times filled, the last reminder is %q", when, filled.Load(), line)
			}
		}
		want(2*time.Minute, "while one kind cannot be listed", true, 0)
		server.Remove("x.io", "things")
		want(time.Hour, "after the kind was removed", false, 0)
		server.Install(things)
		want(150*time.Minute, "after the kind was installed again, with all kinds known", true, 0)
		want(4*time.Hour, "after the kind can be listed", true, 1)
	})
}

// TestReplicaWithNothingToIndex shows that a process without indices has nothing to wait for.
func TestReplicaWithNothingToIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, filled := time.Now(), make(chan time.Duration, 1)
		gate := &reconcilers.Gate{}
		gate.Set(true)
		defer operateAll(t, memapi.New(), reconcilers.Options{
			Gate: gate, RunInEveryReplica: true, OnIndicesFilled: func() { filled <- time.Since(began) },
		}, registrationFor(t, "configmaps", counting("h", "", &atomic.Int64{})))()
		time.Sleep(time.Minute)
		if len(filled) != 1 || <-filled > 0 {
			t.Error("a process without indices must not wait")
		}
	})
}
