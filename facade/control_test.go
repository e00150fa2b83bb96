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
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// controlled is a cluster whose operators are controlled by annotations of their objects.
type controlled struct {
	*testing.T
	server   *memapi.Server
	settings kopf.Settings
	prefix   string

	mu    sync.Mutex
	calls []string
}

// newControlled makes a cluster with widget w1.
func newControlled(t *testing.T, settings kopf.Settings) *controlled {
	c := &controlled{T: t, server: memapi.New(), settings: settings, prefix: "op.example.org"}
	c.server.Install(widgetResource)
	c.server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	c.settings.AddToScheme, c.settings.Peering.Standalone = runtime.SchemeBuilder{addWidgets}, true
	return c
}

// controlledRun is one running operator.
type controlledRun struct {
	*facadetest.Runner
	cluster  *controlled
	op       *kopf.Operator
	explain  http.Handler
	registry *prometheus.Registry
}

// run starts an operator with the handlers, and waits until it has handled the objects.
func (c *controlled) run(register func(kopf.Selection[*Widget])) *controlledRun {
	op := kopf.New("op.example.org", c.settings)
	register(kopf.For(op, &Widget{}))
	r := &controlledRun{cluster: c, op: op, registry: prometheus.NewRegistry(), explain: op.ExplainHandler()}
	r.Runner = facadetest.Start(c.T, op, facadetest.Settings(kopf.RunSettings{
		Config: memapi.Config(c.server.Connect()), Metrics: r.registry,
	}))
	c.wait()
	return r
}

// stop stops the operator.
func (r *controlledRun) stop() {
	if err := r.Stop(); err != nil {
		r.cluster.Errorf("stopping the operator: %v", err)
	}
}

// wait waits some minutes.
func (c *controlled) wait() {
	time.Sleep(5 * time.Minute)
	synctest.Wait()
}

// annotate sets an annotation of w1, removes it without a value, and waits.
func (c *controlled) annotate(name, value string) {
	c.server.Edit(widgetResource, "ns", "w1", func(object map[string]any) {
		metadata, _ := object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
			metadata["annotations"] = annotations
		}
		if annotations[c.prefix+"/"+name] = value; value == "" {
			delete(annotations, c.prefix+"/"+name)
		}
	})
	c.wait()
}

// annotation returns an annotation of w1.
func (c *controlled) annotation(name string) string {
	metadata, _ := c.server.Object(widgetResource, "ns", "w1")["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[c.prefix+"/"+name].(string)
	return text
}

// note records a call.
func (c *controlled) note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
}

// noting returns a function that records its calls, and returns the error.
func (c *controlled) noting(id string, err error) kopf.ChangeFunc[*Widget] {
	return func(_ context.Context, change *Change) error {
		c.note(fmt.Sprint(change.Reason, " ", id))
		return err
	}
}

// requireCalls compares the calls since the last comparison.
func (c *controlled) requireCalls(when string, want ...string) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := cmp.Diff(want, c.calls); d != "" {
		c.Errorf("%s: calls: -want, +got:\n%s", when, d)
	}
	c.calls = nil
}

// requireExplained checks that the explanation of w1 has the text.
func (r *controlledRun) requireExplained(when, want string) {
	r.cluster.Helper()
	_, text := answerTo(r.explain, "/explain?kind=widget&namespace=ns&name=w1&output=text")
	if !strings.Contains(text, want) {
		r.cluster.Errorf("%s: want the explanation %q, got:\n%s", when, want, text)
	}
}

// requireMetric compares the sum of a gauge.
func (r *controlledRun) requireMetric(when, name string, want float64) {
	r.cluster.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.cluster.Fatal(err)
	}
	got := -1.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				got = max(got, 0) + metric.GetGauge().GetValue()
			}
		}
	}
	if got != want {
		r.cluster.Errorf("%s: %s is %v, want %v", when, name, got, want)
	}
}

// inControlled runs a test with a cluster on virtual time.
func inControlled(t *testing.T, settings kopf.Settings, play func(c *controlled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { play(newControlled(t, settings)) })
}

// TestFailuresStayVisible shows that a permanent failure is shown by a later process, until the handler succeeds.
func TestFailuresStayVisible(t *testing.T) {
	inControlled(t, kopf.Settings{}, func(c *controlled) {
		failing := true
		register := func(s kopf.Selection[*Widget]) {
			s.OnCreate("made", func(context.Context, *Change) error {
				c.note("made")
				if failing {
					return kopf.Permanent(errors.New("no such region"))
				}
				return nil
			})
			s.OnResume("back", c.noting("back", nil))
		}
		r := c.run(register)
		r.requireMetric("after the failure", "kopf_objects_failed", 1)
		r.stop()
		c.requireCalls("the first process", "made")

		r = c.run(register)
		c.requireCalls("the second process", "resume back")
		r.requireMetric("after a restart", "kopf_objects_failed", 1)
		r.requireExplained("after a restart", "it failed permanently, before this process was started: no such region")
		if writes := r.Writes(); len(writes) > 0 {
			t.Errorf("the restart wrote %v", writes)
		}
		failing = false
		c.annotate("handle-now", "failed:1")
		c.requireCalls("the request", "made")
		r.requireMetric("after the success", "kopf_objects_failed", 0)
		if left := c.annotation("failed-handlers"); left != "" {
			t.Errorf("the list stays after the success: %s", left)
		}
		if answer := c.annotation("handled-now"); answer != "failed:1" {
			t.Errorf("the answer is %q", answer)
		}
		r.stop()
	})
}

// TestPausedObject shows that the handlers, daemons, timers, event handlers of a paused object wait, and that nothing
// is written, also over a restart.
func TestPausedObject(t *testing.T) {
	inControlled(t, kopf.Settings{}, func(c *controlled) {
		register := func(s kopf.Selection[*Widget]) {
			s.OnUpdate("changed", c.noting("changed", nil))
			s.OnDelete("gone", c.noting("gone", nil))
			s.OnEvent("seen", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
				c.note("event")
				return nil
			})
			s.Daemon("watch", func(ctx context.Context, task *kopf.Task[*Widget]) error {
				c.note("daemon begins")
				<-ctx.Done()
				c.note("daemon ends: " + context.Cause(ctx).Error())
				return nil
			})
			s.Timer("tick", 4*time.Minute, func(context.Context, *kopf.Task[*Widget]) error {
				c.note("tick")
				return nil
			})
		}
		r := c.run(register)
		c.calls = nil
		c.annotate("paused", "true")
		if calls := strings.Join(c.calls, ","); !strings.Contains(calls, "daemon ends") ||
			strings.Contains(calls, "event") {
			t.Errorf("the pause must stop the daemon, and call no event handler: %s", calls)
		}
		c.calls = nil
		writes := len(r.Writes())
		c.server.Edit(widgetResource, "ns", "w1", func(object map[string]any) {
			object["spec"] = map[string]any{"size": int64(2)}
		})
		c.wait()
		c.requireCalls("in the pause")
		r.requireMetric("in the pause", "kopf_objects_paused", 1)
		r.requireExplained("in the pause", "The object is paused by its annotation: it waits for the removal of its "+
			"annotation op.example.org/paused; a deletion is handled. No handlers, daemons and timers run for it.")
		if more := r.Writes()[writes:]; len(more) > 0 {
			t.Errorf("writes in the pause: %v", more)
		}
		r.stop()

		r = c.run(register)
		c.requireCalls("in the pause, after a restart")
		r.requireMetric("after a restart", "kopf_objects_paused", 1)
		c.annotate("paused", "")
		r.requireMetric("after the pause", "kopf_objects_paused", 0)
		for _, want := range []string{"update changed", "daemon begins", "tick"} {
			if !slices.Contains(c.calls, want) {
				t.Errorf("after the pause: want %s in %v", want, c.calls)
			}
		}
		c.calls = nil
		c.annotate("paused", "deletion")
		c.calls = nil
		c.server.Delete(widgetResource, "ns", "w1")
		c.wait()
		c.requireCalls("a deletion in a pause that covers it")
		c.annotate("paused", "true")
		c.requireCalls("the deletion in a pause that does not cover it", "event", "delete gone", "event")
		r.stop()
	})
}

// TestControlAsKopf shows that objects of Kopf are controlled, too, without the list of failures (D-control).
func TestControlAsKopf(t *testing.T) {
	settings := kopf.AsKopf()
	inControlled(t, settings, func(c *controlled) {
		c.prefix = "kopf.zalando.org"
		register := func(s kopf.Selection[*Widget]) {
			s.OnCreate("made", c.noting("made", kopf.Permanent(errors.New("no"))))
		}
		c.annotate("paused", "true")
		r := c.run(register)
		c.requireCalls("in the pause")
		c.annotate("paused", "")
		c.requireCalls("after the pause", "create made")
		r.requireMetric("after the failure", "kopf_objects_failed", 1)
		if list := c.annotation("failed-handlers"); list != "" {
			t.Errorf("Kopf does not have the list, got %s", list)
		}
		c.annotate("handle-now", "failed:1")
		c.requireCalls("failed, without a list")
		c.annotate("handle-now", "all:1")
		c.requireCalls("all", "create made")
		if answer := c.annotation("handled-now"); answer != "all:1" {
			t.Errorf("the answer is %q", answer)
		}
		r.stop()
	})
}

// TestManyControlledObjects shows that a request costs one write for each object, and that none follows.
func TestManyControlledObjects(t *testing.T) {
	inControlled(t, kopf.Settings{}, func(c *controlled) {
		const many = 200
		c.server.Discard(widgetResource, "ns", "w1")
		for n := range many {
			object := body(map[string]any{"size": int64(1)})
			metadata, _ := object["metadata"].(map[string]any)
			metadata["name"], metadata["uid"] = fmt.Sprint("w", n), fmt.Sprint("u", n)
			c.server.Put(widgetResource, object)
		}
		r := c.run(func(s kopf.Selection[*Widget]) { s.OnCreate("made", c.noting("made", nil)) })
		c.calls = nil
		before := len(r.Writes())
		for n := range many {
			c.server.Edit(widgetResource, "ns", fmt.Sprint("w", n), func(object map[string]any) {
				metadata, _ := object["metadata"].(map[string]any)
				annotations, _ := metadata["annotations"].(map[string]any)
				annotations["op.example.org/handle-now"] = "all:1"
			})
		}
		for range 12 { // an hour
			c.wait()
		}
		if writes := len(r.Writes()) - before; writes != many || len(c.calls) != many {
			t.Errorf("want one call and one write for each of %d objects, got %d and %d", many, len(c.calls), writes)
		}
		r.stop()
	})
}

// TestPausedCondition shows that the condition of a pause is written once, is removed after it, and changes no other.
func TestPausedCondition(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		way, _, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.Conditions()
			s.OnCreate("made", func(context.Context, *dynamicChange) error { return nil })
		})
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		ready := []string{"Ready=True Succeeded@1: all handlers have succeeded", "observed 1 of 1"}
		paused := []string{ready[0], "HandlingPaused=True Annotated@<nil>: handlers, daemons and timers are paused: " +
			"it waits for the removal of its annotation test.example.org/paused; a deletion is handled", ready[1]}
		for range 2 {
			writes(way)
			for _, step := range []struct {
				value any
				want  []string
			}{{"true", paused}, {nil, ready}} {
				e.edit(func(house map[string]any) {
					metadata, _ := house["metadata"].(map[string]any)
					annotations, _ := metadata["annotations"].(map[string]any)
					if annotations["test.example.org/paused"] = step.value; step.value == nil {
						delete(annotations, "test.example.org/paused")
					}
				})
				if d := cmp.Diff(step.want, e.summary()); d != "" {
					t.Errorf("with the pause %v: -want, +got:\n%s", step.value, d)
				}
			}
			if d := cmp.Diff([]string{"patch houses/status", "patch houses/status"}, writes(way)); d != "" {
				t.Errorf("writes: -want, +got:\n%s", d)
			}
		}
	})
}
