package kopf_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// floodMinutes is the number of minutes in which the requests of a flood are counted.
const floodMinutes = 3

// TestEventFlood logs and checks the number of requests for Kubernetes events if a handler fails each second and
// posts an event each time. The variable FLOOD_OBJECTS sets the number of objects.
func TestEventFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	objects := 10
	if asked := os.Getenv("FLOOD_OBJECTS"); asked != "" {
		var err error
		if objects, err = strconv.Atoi(asked); err != nil {
			t.Fatal(err)
		}
	}
	// The limits of all objects in a minute and initially, with a further second, and the limits of one object.
	const inAll, burst, perObject, atOnce = 600, 110, 1, 25
	limit := min(inAll*floodMinutes+burst, objects*(atOnce+perObject*floodMinutes+1))
	for name, tc := range map[string]struct {
		reason                   string
		settings                 kopf.PostingSettings
		message                  func(retry int) string
		maxRequests, minRequests int // requests
		maxEvents                int // events, at most
	}{
		"Plain": {
			reason:   "without limits, each attempt creates an event",
			settings: kopf.PostingSettings{Plain: true}, message: attempt,
			maxRequests: objects * (60*floodMinutes + 1), minRequests: objects * 50 * floodMinutes,
			maxEvents: objects * (60*floodMinutes + 1),
		},
		"Different": {
			reason:  "different events of an object are limited to a burst and then one per minute",
			message: attempt, maxRequests: limit, minRequests: min(objects*atOnce, inAll), maxEvents: limit,
		},
		"Identical": {
			reason:      "identical events are counted in one event per object",
			message:     func(int) string { return "no server" },
			maxRequests: limit, minRequests: min(objects*atOnce, inAll), maxEvents: objects,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := flood(t, objects, tc.settings, tc.message)
			all := int(f.maxEvents + f.updated)
			t.Logf("%d objects, %d attempts a minute: %d requests for events a minute, of which %d make a new one",
				objects, f.attempts/floodMinutes, all/floodMinutes, f.maxEvents/floodMinutes)
			if all > tc.maxRequests || all < tc.minRequests || int(f.maxEvents) > tc.maxEvents {
				t.Errorf("%s: got %d requests, %d of them creations; want %d to %d, at most %d of them creations",
					tc.reason,
					all, f.maxEvents, tc.minRequests, tc.maxRequests, tc.maxEvents)
			}
			if f.attempts < int64(objects*50*floodMinutes) {
				t.Errorf("the limits of events do not delay handlers: got %d attempts", f.attempts)
			}
		})
	}
}

func attempt(retry int) string { return fmt.Sprint("no server, tried ", retry, " times") }

// floodCounts counts, for a flood, the created events, the requests that count repeated events, and the attempts of the
// handler.
type floodCounts struct{ maxEvents, updated, attempts int64 }

// flood runs an operator with a failing handler for some minutes.
func flood(t *testing.T, objects int, settings kopf.PostingSettings, message func(retry int) string) (f floodCounts) {
	t.Helper()
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		for i := range objects {
			object := body(map[string]any{"size": int64(1)})
			metadata := object["metadata"].(map[string]any)
			metadata["name"], metadata["uid"] = fmt.Sprint("w", i), fmt.Sprint("uid-", i)
			server.Put(widgetResource, object)
		}
		var created, counted, called atomic.Int64
		way := server.Connect()
		way.After = func(_ context.Context, r memapi.Request) error {
			switch {
			case r.Resource.Plural != "events":
			case r.Verb == "create":
				created.Add(1)
			case r.Verb == "patch":
				counted.Add(1)
			}
			return nil
		}
		op := kopf.New("test.example.org", kopf.Settings{Posting: settings})
		kopf.For(op, &Widget{}).OnCreate("create", func(_ context.Context, c *Change) error {
			called.Add(1)
			err := kopf.Temporary(fmt.Errorf("no server"), time.Second)
			c.Exception("NoServer", message(c.Retry), err)
			return err
		})
		stop := startInManager(t, way, op)
		<-op.Ready()
		time.Sleep(floodMinutes * time.Minute)
		f = floodCounts{created.Load(), counted.Load(), called.Load()}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}
