package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
)

var gadgets = memapi.Resource{Group: "example.org", Version: "v1", Kind: "Gadget", Plural: "gadgets"}

// quietTime is how long a daemon ignores its cancellation: longer than the rest of the test takes.
const quietTime = 9 * time.Hour

// registerLoggingHandlers registers handlers of all families, which log, write, post events, fail and are retried.
func registerLoggingHandlers(op *kopf.Operator, selected kopf.Selection[*kopf.Unstructured]) {
	change := func(ctx context.Context, c *Raw) error {
		logf.FromContext(ctx).Info("Handling", "n", c.Retry)
		c.Info("Handling", "an event that the server refuses")
		c.Patch(func(o *kopf.Unstructured) { _ = kopf.SetField(o, "spec.seen", c.ID) })
		c.Sub("sub", func(ctx context.Context, c *Raw) error {
			logf.FromContext(ctx).Info("Handling a part")
			return kopf.Permanent(fmt.Errorf("broken"))
		})
		switch c.Retry {
		case 0:
			return errors.New("not now")
		case 1:
			panic("not at all")
		}
		return nil
	}
	selected.On("change", kopf.CreateUpdateResume(), change, kopf.Backoff(time.Second))
	selected.OnDelete("delete", change)
	selected.OnField("field", "spec.size", change)
	selected.When(func(context.Context, *kopf.Unstructured) bool { panic("no filter") }).OnEvent("filtered",
		func(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error { return nil })
	selected.OnEvent("event", func(ctx context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
		logf.FromContext(ctx).Info("Seen")
		e.Patch(func(*kopf.Unstructured) { panic("no patch") })
		return errors.New("no event")
	})
	run := func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
		logf.FromContext(ctx).Info("Running")
		r.Patch(func(o *kopf.Unstructured) { _ = kopf.SetField(o, "spec.ran", time.Now().String()) })
		return kopf.Temporary(fmt.Errorf("again"), time.Minute)
	}
	selected.Daemon("daemon", run)
	selected.Daemon("deaf", func(context.Context, *kopf.Task[*kopf.Unstructured]) error {
		time.Sleep(quietTime)
		return nil
	}, kopf.CancelTimeout(time.Second))
	selected.Timer("timer", time.Minute, run)
	kopf.NewIndex(selected, "index", func(context.Context, *kopf.Unstructured) (map[string]string, error) {
		return nil, errors.New("no index")
	})
}

// TestLogLinesNameTheirObject shows that each log line about an object has the reference of the object, from its
// creation to its deletion.
func TestLogLinesNameTheirObject(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		server, out := memapi.New(), &lockedBuffer{}
		connection := server.Connect()
		began := time.Now()
		connection.Before = func(_ context.Context, r memapi.Request) error {
			isOutage := time.Since(began) < 10*time.Second && !strings.Contains(string(r.Body), "finalizers")
			if r.Resource.Plural == "events" || r.Verb == "patch" && isOutage {
				return apierrors.NewInternalError(errors.New("no disk"))
			}
			return nil
		}
		op := kopf.New("test.example.org", kopf.Settings{
			Networking: kopf.NetworkingSettings{ErrorBackoffs: []time.Duration{time.Second}},
		})
		for _, r := range []memapi.Resource{widgetResource, gadgets} {
			server.Install(r)
			registerLoggingHandlers(op, kopf.ForResource(op, r.Plural+".v1."+r.Group))
		}
		kopf.For(op, &Widget{}).OnCreate("typed", succeed)
		stop := operate(t, connection, op, console.New(out, console.Options{
			Format: console.JSON, Verbosity: console.Verbose,
		}))
		wrong := body(map[string]any{"size": "not a number"})
		wrong["metadata"] = map[string]any{"namespace": "ns", "name": "w2", "uid": "uid-2"}
		server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
		server.Put(widgetResource, wrong)
		server.Put(gadgets, map[string]any{"metadata": map[string]any{"name": "g1", "uid": "uid-3"}})
		time.Sleep(5 * time.Minute)
		for _, o := range []struct {
			resource        memapi.Resource
			namespace, name string
		}{{widgetResource, "ns", "w1"}, {gadgets, "", "g1"}} {
			server.Edit(o.resource, o.namespace, o.name, func(object map[string]any) {
				object["spec"] = map[string]any{"size": int64(2)}
			})
			time.Sleep(5 * time.Minute)
			server.Delete(o.resource, o.namespace, o.name)
			time.Sleep(5 * time.Minute)
			server.Put(o.resource, map[string]any{"metadata": map[string]any{
				"namespace": o.namespace, "name": o.name, "uid": "another-" + o.name,
			}})
			time.Sleep(5 * time.Minute)
		}
		stop()
		time.Sleep(quietTime)
		var messages []string
		for line := range strings.Lines(out.String()) {
			messages = append(messages, checkReference(t, line))
		}
		slices.Sort(messages)
		want := []string{
			"Cannot call the handler with this object; waiting until the object changes",
			"Cannot handle the object now; retrying",
			"Deletion handlers wait until daemons and timers of the object have ended",
			"Failed to post a Kubernetes event; dropping it",
			"Failed to write the changes of a handler; retrying",
			"Filter of a handler failed; skipping the event for it",
			"Handler did not stop in time; abandoning it, though it may still be running",
			"Handler failed permanently",
			"Handler failed temporarily; retrying",
			"Handler failed; its errors are ignored",
			"Handler succeeded",
			"Handling",
			"Handling a part",
			"Index function failed; keeping the entries of the object",
			"Not posting a Kubernetes event: there were many about the object",
			"Operator started",
			"Operator stopped",
			"Request to the API server failed; repeating it",
			"Running",
			"Seen",
		}
		if d := cmp.Diff(want, slices.Compact(messages)); d != "" {
			t.Errorf("the log must have exactly these messages: -want, +got:\n%s", d)
		}
	})
}

// references has the expected references of all objects, by uid.
var references = map[string]map[string]any{
	"uid-1":      {"kind": "Widget", "namespace": "ns", "name": "w1"},
	"uid-2":      {"kind": "Widget", "namespace": "ns", "name": "w2"},
	"uid-3":      {"kind": "Gadget", "namespace": nil, "name": "g1"},
	"another-w1": {"kind": "Widget", "namespace": "ns", "name": "w1"},
	"another-g1": {"kind": "Gadget", "namespace": nil, "name": "g1"},
}

// checkReference checks the object reference of a log line and returns the message of the line.
func checkReference(t *testing.T, line string) (message string) {
	t.Helper()
	var got struct {
		Message string
		Object  map[string]any
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Errorf("%v: %s", err, line)
	}
	if strings.HasPrefix(got.Message, "Operator st") { // started or stopped
		return got.Message
	}
	uid, _ := got.Object["uid"].(string)
	want := map[string]any{"apiVersion": "example.org/v1", "uid": uid}
	maps.Copy(want, references[uid])
	if d := cmp.Diff(want, got.Object); d != "" {
		t.Errorf("%s: -want, +got:\n%s", line, d)
	}
	return got.Message
}
