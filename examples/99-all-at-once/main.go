// Command 99-all-at-once has one handler of every kind: it shows how to register them, and in which order they are
// called.
package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	Change = kopf.Change[*kopf.Unstructured]
	Run    = kopf.Task[*kopf.Unstructured]
)

// operator has the data that handlers share: here an index and a memo, in other programs also connections.
type operator struct {
	byField *kopf.Index[string, string] // names of examples, by spec.field
	ticks   *kopf.Memo[int]             // how often the timer was called for an example
}

func main() {
	op := kopf.New("all.kopf.dev", kopf.Settings{
		Execution: kopf.ExecutionSettings{DefaultBackoff: 5 * time.Second},
		Admission: kopf.AdmissionSettings{ // begin replaces the URL
			Managed: "all.kopf.dev", URL: "https://localhost:9443", SelfSigned: true,
		},
	})
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	op.OnStartup("begin", begin)
	op.OnProbe("time", now)
	op.OnCleanup("end", end)

	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	o := &operator{
		byField: kopf.NewIndex(examples, "by-field", fieldOf),
		ticks:   kopf.NewMemo[int](examples),
	}
	examples.Mutate("default", setDefault, kopf.Operations("CREATE"))
	examples.Validate("check", check, kopf.Operations("CREATE", "UPDATE"))
	examples.OnEvent("seen", seen)
	examples.OnCreate("create_fn", create, kopf.Retries(3))
	examples.OnUpdate("update_fn", o.update)
	examples.OnField("field_fn", "spec.field", fieldChanged)
	examples.OnResume("resume_fn", resume)
	examples.OnDelete("delete_fn", remove)
	examples.Daemon("watch", watch)
	examples.WithLabel("timed", kopf.Present).Timer("tick", time.Second, o.tick)
	examples.Owns(&corev1.ConfigMap{})
	kopf.OnChild(examples, "child", child)
}

// fieldOf is called for every example before all other handlers, so the index by-field is complete from the beginning.
func fieldOf(_ context.Context, o *kopf.Unstructured) (map[string]string, error) {
	return map[string]string{kopf.GetFieldOr(o, "spec.field", ""): o.GetName()}, nil
}

func seen(ctx context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
	log.FromContext(ctx).Info("Seen", "event", e.Type)
	return nil
}

// create divides its work, creates a child, posts an event, and sets a result.
func create(ctx context.Context, c *Change) error {
	for _, part := range []string{"one", "two"} {
		c.Sub(part, func(ctx context.Context, _ *Change) error {
			log.FromContext(ctx).Info("Part is done", "part", part)
			return nil
		})
	}
	settings := &corev1.ConfigMap{Data: map[string]string{"field": kopf.GetFieldOr(c.Object, "spec.field", "")}}
	settings.Name = c.Object.GetName()
	if err := c.Ensure(ctx, settings); err != nil {
		return err
	}
	c.Info("Created", "It has its settings")
	c.SetResult(map[string]any{"message": "hello world"})
	return nil
}

func (o *operator) update(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Updated", "changes", fmt.Sprint(c.Diff), "known", o.byField.Len())
	return nil
}

// fieldChanged is called for a new object as well: a value that was not there before is nil.
func fieldChanged(ctx context.Context, c *Change) error {
	before, after := kopf.FieldChange[string](c)
	log.FromContext(ctx).Info("The field is another",
		"before", ptr.Deref(before, "none"), "after", ptr.Deref(after, "none"))
	return nil
}

func resume(ctx context.Context, _ *Change) error {
	log.FromContext(ctx).Info("Resumed")
	return nil
}

func remove(ctx context.Context, _ *Change) error {
	log.FromContext(ctx).Info("Removed")
	return nil
}

// watch runs in the background until the object is deleted.
func watch(ctx context.Context, r *Run) error {
	log.FromContext(ctx).Info("The watch begins")
	<-r.Stopping()
	log.FromContext(ctx).Info("The watch ends", "why", r.StopReason().Error())
	return nil
}

func (o *operator) tick(ctx context.Context, r *Run) error {
	count := o.ticks.Of(r.Latest())
	*count++
	log.FromContext(ctx).Info("Tick", "times", *count)
	return nil
}

// child is called for each event of a child, except for the operator's own writes.
func child(ctx context.Context, e *kopf.ChildEvent[*kopf.Unstructured, *corev1.ConfigMap]) error {
	log.FromContext(ctx).Info("Got an event of a child", "child", e.Child.Name, "event", e.Type)
	return nil
}
