package monitoring_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestAChangeIsHandledLater shows that a change is unhandled from its event to the success of the last handler, and
// that waiting retries are counted.
func TestAChangeIsHandledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		w.start(func(all kopf.Selection[*kopf.Unstructured]) {
			all.On("provision", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, failUntil(1, time.Minute))
		})
		w.requireValues("before", map[string]float64{
			"retries_waiting provision": 0, "unhandled_changes": 0, "oldest_unhandled_change_age_seconds": 0,
			"change_latency_seconds create": -1,
		})
		w.open("a", 1)
		time.Sleep(30 * time.Second)
		w.open("b", 1)
		time.Sleep(20 * time.Second)
		w.requireValues("both wait", map[string]float64{
			"retries_waiting provision": 2, "unhandled_changes": 2, "oldest_unhandled_change_age_seconds": 50,
			"handler_attempts_total provision retry create": 2,
		})
		time.Sleep(20 * time.Second)
		w.requireValues("one is done", map[string]float64{
			"retries_waiting provision": 1, "unhandled_changes": 1, "oldest_unhandled_change_age_seconds": 40,
			"change_latency_seconds create": 1,
		})
		w.server.Delete(shops, "default", "b")
		time.Sleep(time.Second)
		w.requireValues("the other is gone", map[string]float64{
			"retries_waiting provision": 0, "unhandled_changes": 0, "oldest_unhandled_change_age_seconds": 0,
			"change_latency_seconds create": 1, "objects_remembered": 0,
		})
		w.resize("a", 2)
		time.Sleep(2 * time.Minute)
		w.requireValues("another change", map[string]float64{
			"unhandled_changes": 0, "change_latency_seconds create": 1, "change_latency_seconds update": 1,
		})
	})
}

// While a handler goes on, the next change waits from its own event on.
func TestAChangeDuringAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		w.start(func(all kopf.Selection[*kopf.Unstructured]) {
			slow := func(context.Context, *change) error { time.Sleep(time.Minute); return nil }
			all.OnCreate("create", slow)
			all.OnUpdate("update", slow)
		})
		w.open("a", 1)
		time.Sleep(40 * time.Second)
		w.requireValues("the creation", map[string]float64{
			"oldest_unhandled_change_age_seconds": 40, "active_workers create": 1, "retries_waiting create": 0,
		})
		w.resize("a", 2)
		time.Sleep(30 * time.Second)
		w.requireValues("the update", map[string]float64{
			"unhandled_changes": 1, "oldest_unhandled_change_age_seconds": 30, "change_latency_seconds create": 1,
			"active_workers create": 0, "active_workers update": 1,
		})
		time.Sleep(time.Minute)
		w.requireValues("after both", map[string]float64{"unhandled_changes": 0, "change_latency_seconds update": 1})
	})
}

// Another process knows by the records since when a handler has been trying.
func TestAChangeSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		trying := func(all kopf.Selection[*kopf.Unstructured]) { all.OnCreate("provision", failUntil(9, time.Hour)) }
		w.start(trying)
		w.open("a", 1)
		time.Sleep(10 * time.Minute)
		w.requireValues("at first", map[string]float64{
			"oldest_unhandled_change_age_seconds": 600, "retries_waiting provision": 1,
		})
		w.stop()
		w.requireValues("in between", map[string]float64{
			"retries_waiting provision": -1, "unhandled_changes": -1, "paused": -1, "workqueue_depth": -1,
			"watch_age_seconds": -1, "objects_remembered": -1, "handler_attempts_total provision retry create": 1,
		})
		time.Sleep(10*time.Minute - 15*time.Second)
		began := time.Now()
		w.start(trying)
		time.Sleep(time.Minute - time.Since(began))
		w.requireValues("again", map[string]float64{"retries_waiting provision": 1, "unhandled_changes": 1,
			"paused": 0})
		if age := w.values()["oldest_unhandled_change_age_seconds"]; age < 1230 {
			t.Errorf("the change is %v seconds old, more than 20 minutes after it", age)
		}
	})
}

// While the API server takes no writes, what handlers did is remembered, and the change is open.
func TestWhatIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		way := &failingTransport{next: w.server}
		w.transport = way
		w.start(func(all kopf.Selection[*kopf.Unstructured]) {
			all.OnCreate("create", func(context.Context, *change) error { return nil })
		})
		way.isFailing.Store(true)
		w.open("a", 1)
		time.Sleep(30 * time.Second)
		w.requireValues("unwritten", map[string]float64{
			"objects_remembered": 1, "unhandled_changes": 1, "oldest_unhandled_change_age_seconds": 30,
		})
		way.isFailing.Store(false)
		time.Sleep(5 * time.Minute)
		w.requireValues("written", map[string]float64{
			"objects_remembered": 0, "unhandled_changes": 0, "change_latency_seconds create": 1,
		})
		if got := w.values(); got["api_requests_total error patch"] < 1 || got["api_requests_total 2xx patch"] != 1 ||
			got["api_requests_total 2xx watch"] < 1 {
			t.Errorf("the requests: %v", got)
		}
	})
}

func TestBackgroundAndIndices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		w.start(func(all kopf.Selection[*kopf.Unstructured]) {
			all.Daemon("watch", func(_ context.Context, r *run) error {
				<-r.Stopping()
				time.Sleep(20 * time.Second)
				return nil
			}, kopf.CancelTimeout(time.Minute))
			kopf.NewIndex(all, "by-size", func(_ context.Context, shop *kopf.Unstructured) (map[int64]string, error) {
				return map[int64]string{kopf.GetFieldOr(shop, "spec.size", int64(0)): shop.GetName()}, nil
			})
			all.Daemon("try", func(context.Context, *run) error { return kopf.Temporary(errNotYet, time.Hour) })
			all.Timer("count", time.Minute, func(context.Context, *run) error {
				time.Sleep(20 * time.Second)
				return nil
			})
		})
		none := map[string]float64{
			"daemons watch running": 0, "daemons try waiting": 0, "timers count running": 0, "timers count waiting": 0,
			"daemons watch stopping": 0, "index_keys by-size": 0, "index_objects by-size": 0,
		}
		w.requireValues("before", none)
		w.open("a", 1)
		w.open("b", 1)
		time.Sleep(10 * time.Second)
		w.requireValues("all run", map[string]float64{
			"daemons watch running": 2, "daemons try waiting": 2, "daemons try running": 0, "timers count running": 2,
			"index_keys by-size": 1, "index_objects by-size": 2,
		})
		time.Sleep(20 * time.Second)
		w.requireValues("between ticks", map[string]float64{"timers count running": 0, "timers count waiting": 2})
		w.server.Delete(shops, "default", "a")
		time.Sleep(10 * time.Second)
		w.requireValues("one ends", map[string]float64{
			"daemons watch running": 1, "daemons watch stopping": 1, "timers count waiting": 1,
			"index_objects by-size": 2,
		})
		w.server.Delete(shops, "default", "b")
		time.Sleep(5 * time.Minute)
		w.requireValues("both are gone", none)
	})
}

var peerings = memapi.Resource{
	Group: "kopf.dev", Version: "v1", Kind: "ClusterKopfPeering", Plural: "clusterkopfpeerings",
}

// In a pause nothing is late, as others handle the objects.
func TestAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		w.server.Install(peerings)
		w.server.Put(peerings, map[string]any{"metadata": map[string]any{"name": "shared"}})
		w.start(func(all kopf.Selection[*kopf.Unstructured]) { all.OnCreate("create", failUntil(9, time.Hour)) },
			kopf.Settings{Peering: kopf.PeeringSettings{Name: "shared", Identity: "me"}})
		w.open("a", 1)
		time.Sleep(time.Minute)
		w.requireValues("before", map[string]float64{"paused": 0, "unhandled_changes": 1})
		w.server.Edit(peerings, "", "shared", func(object map[string]any) {
			object["status"] = map[string]any{"him": map[string]any{
				"priority": int64(9), "lifetime": int64(120), "lastseen": time.Now().UTC().Format(time.RFC3339),
			}}
		})
		time.Sleep(time.Minute)
		w.requireValues("in the pause", map[string]float64{
			"paused": 1, "unhandled_changes": -1, "watch_age_seconds": -1, "retries_waiting create": -1,
		})
		time.Sleep(3 * time.Minute)
		w.requireValues("after it", map[string]float64{"paused": 0, "unhandled_changes": 1,
			"retries_waiting create": 1})
	})
}

// Bookmarks keep a watch young. One that is granted, and by which nothing comes, gets old, though it is renewed.
func TestASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t)
		way := &muteTransport{next: w.server}
		w.transport = way
		w.start(func(all kopf.Selection[*kopf.Unstructured]) { all.OnCreate("create", failUntil(0, 0)) })
		for range 10 {
			time.Sleep(47 * time.Second)
			if age := w.values()["watch_age_seconds"]; age > 125 {
				t.Errorf("a watch with bookmarks is %v seconds old", age)
			}
		}
		way.isMuted.Store(true)
		time.Sleep(10 * time.Minute)
		if age := w.values()["watch_age_seconds"]; age < 540 {
			t.Errorf("a watch without events for 9 minutes has an age of %v seconds", age)
		}
		way.isMuted.Store(false)
		time.Sleep(3 * time.Minute)
		if age := w.values()["watch_age_seconds"]; age > 125 {
			t.Errorf("a watch with a new event has an age of %v seconds", age)
		}
	})
}
