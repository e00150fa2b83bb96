package kopf_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// calledHandlers collects the calls of an operator.
type calledHandlers struct {
	mu  sync.Mutex
	all []string
}

// add adds a call.
func (c *calledHandlers) add(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, call)
}

// newDeletingOperator returns an operator with handlers of all families. The deletion of the widget "stuck" fails.
func newDeletingOperator(called *calledHandlers) *kopf.Operator {
	op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
	widgets := kopf.For(op, &Widget{})
	change := func(verb string) kopf.ChangeFunc[*Widget] {
		return func(_ context.Context, c *kopf.Change[*Widget]) error {
			called.add(verb + " " + c.Object.Name)
			if c.Object.Name == "stuck" {
				return errors.New("still in use")
			}
			return nil
		}
	}
	op.OnStartup("open", func(context.Context, *kopf.Activity) error { called.add("open"); return nil })
	op.OnCleanup("close", func(context.Context, *kopf.Activity) error { called.add("close"); return nil })
	op.WithManager(func(ctrl.Manager) error { called.add("WithManager"); return nil })
	widgets.Owns(&corev1.ConfigMap{})
	widgets.OnCreate("create", change("create"))
	widgets.OnUpdate("update", change("update"))
	widgets.OnResume("resume", change("resume"))
	widgets.OnDelete("delete", change("delete"))
	widgets.Daemon("daemon", func(_ context.Context, task *kopf.Task[*Widget]) error {
		called.add("daemon " + task.Object.Name)
		return nil
	})
	widgets.OnEvent("event", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
		called.add("event " + e.Object.Name)
		return nil
	})
	return op
}

// TestDrainRunsDeletions shows that --deletions run calls the handlers of deletions and of the process, and no others,
// and that objects whose handlers do not finish in time are left and listed.
func TestDrainRunsDeletions(t *testing.T) {
	server := memapi.New()
	server.Install(widgetResource)
	server.Install(configMaps)
	put := func(name string, deletion any) {
		server.Put(widgetResource, map[string]any{"metadata": map[string]any{
			"name": name, "namespace": "default", "uid": name, "finalizers": []any{"test.example.org/finalizer"},
			"deletionTimestamp": deletion,
		}})
	}
	kubeconfig := serve(t, server)
	drain := func(called *calledHandlers, args ...string) (code int, output string) {
		code, out, errs := execute(t, newDeletingOperator(called),
			append([]string{"drain", "-A", "-y", "--kubeconfig", kubeconfig, "--deletions", "run"}, args...)...)
		return code, out + errs
	}
	put("kept", nil)
	put("one", "2020-01-01T00:00:00Z")
	put("two", "2020-01-01T00:00:00Z")
	called := &calledHandlers{}
	if code, output := drain(called, "--check"); code != 2 || len(called.all) > 0 {
		t.Errorf("a check calls no handler: got code %d, %v\n%s", code, called.all, output)
	}
	if code, output := drain(called); code != 0 {
		t.Errorf("the drain is complete: got code %d\n%s", code, output)
	}
	slices.Sort(called.all[1:3])
	if d := cmp.Diff([]string{"open", "delete one", "delete two", "close"}, called.all); d != "" {
		t.Errorf("only handlers of deletions and of the process are called (-want, +got):\n%s", d)
	}
	if server.Object(widgetResource, "default", "one") != nil {
		t.Error("an object disappears when its handlers have succeeded")
	}
	metadata, _ := server.Object(widgetResource, "default", "kept")["metadata"].(map[string]any)
	if metadata["finalizers"] != nil || metadata["annotations"] != nil {
		t.Errorf("an object that is not being deleted is released and not handled: got %v", metadata)
	}
	put("stuck", "2020-01-01T00:00:00Z")
	called = &calledHandlers{}
	code, output := drain(called, "--deletion-timeout", "3s")
	if code != 1 || !strings.Contains(output, "default/stuck") || !strings.Contains(output, "not finished within 3s") {
		t.Errorf("an object whose handlers fail is left: got code %d\n%s", code, output)
	}
	if d := cmp.Diff([]string{"open", "delete stuck", "close"}, called.all); d != "" {
		t.Errorf("a failed handler waits for its delay (-want, +got):\n%s", d)
	}
	called = &calledHandlers{}
	if code, output := drain(called, "-n", "other"); code != 2 || len(called.all) > 0 {
		t.Errorf("-A and -n exclude each other: got code %d, %v\n%s", code, called.all, output)
	}
}

// TestDrainOfChangingObjects shows that, after a conflict, a drain decides again by the newest state of the object.
func TestDrainOfChangingObjects(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(house *unstructured.Unstructured) // by another client, before the first write of the drain
		left   []string
	}{
		"deleted": {"an object whose deletion has begun keeps its finalizer for its handlers",
			func(house *unstructured.Unstructured) { house.SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) },
			[]string{"House.test.example.org default/one: finalizer"}},
		"stored": {"a record that was stored meanwhile is removed, too",
			func(house *unstructured.Unstructured) {
				annotations := house.GetAnnotations()
				annotations["drain.example.com/former"] = `{"started":"2020-01-01T00:00:00Z"}`
				house.SetAnnotations(annotations)
			}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inDrained(t, kopf.Settings{}, func(d *drained) {
				var isChanged sync.Once
				way := d.api.Connect()
				way.Before = func(_ context.Context, r memapi.Request) error {
					if r.Verb == "patch" && strings.HasSuffix(r.Path, "/one") {
						isChanged.Do(func() {
							d.api.Edit(houses, "default", "one", func(house map[string]any) {
								c.change(&unstructured.Unstructured{Object: house})
							})
						})
					}
					return nil
				}
				requireItems(t, d.drain(way, nil), c.left...)
				finalizers := d.house("one").GetFinalizers()
				if slices.Contains(finalizers, "drain.example.com/finalizer") != (c.left != nil) {
					t.Errorf("%s: got the finalizers %v", c.reason, finalizers)
				}
			})
		})
	}
}
