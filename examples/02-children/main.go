// Command 02-children makes other objects of its own: a config map for every item, which come and go with the items,
// and a pod, which is made once.
package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

type Change = kopf.Change[*kopf.Unstructured]

func main() {
	op := kopf.New("children.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	examples.On("items", kopf.CreateUpdateResume(), items)
	examples.OnCreate("worker", worker)

	examples.Owns(&corev1.ConfigMap{}) // restores config maps that others edit or delete
	examples.Owns(&corev1.Pod{})
	kopf.OnChild(examples, "report", report)
}

// items says what there is to be, and nothing of how it came so: what is missing is made, what differs is changed, and
// what was declared for an item that is not there any more is deleted.
func items(ctx context.Context, c *Change) error {
	wanted := kopf.GetFieldOr(c.Object, "spec.items", []string(nil))
	children := make([]*corev1.ConfigMap, 0, len(wanted))
	for i, item := range wanted {
		child := &corev1.ConfigMap{Data: map[string]string{"item": item, "place": fmt.Sprint(i + 1)}}
		child.Name = c.Object.GetName() + "-" + item
		children = append(children, child)
	}
	if err := c.Ensure(ctx, children); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Every item has its config map", "items", len(wanted))
	return nil
}

// worker makes a pod by hand, as what is made of it cannot be changed later. The pod has the very name of its owner: if
// the handler is called again, it is there already, and no second one is made.
func worker(ctx context.Context, c *Change) error {
	duration, err := time.ParseDuration(kopf.GetFieldOr(c.Object, "spec.duration", "1m"))
	if err != nil {
		return kopf.Permanent(fmt.Errorf("spec.duration is invalid: %w", err))
	}
	pod := sleeper(duration)
	if err := hierarchies.Adopt(c.Object, pod, hierarchies.Strict()); err != nil {
		return err
	}
	if err := c.Client.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	log.FromContext(ctx).Info("The worker is there", "pod", pod.Name)
	c.SetResult(map[string]any{"pod": pod.Name})
	return nil
}

func sleeper(duration time.Duration) *corev1.Pod {
	return &corev1.Pod{
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "worker", Image: "busybox", Command: []string{"sleep", fmt.Sprint(duration.Seconds())},
			}},
		},
	}
}

// report is called for what happens to a pod, and writes to its owner.
func report(ctx context.Context, e *kopf.ChildEvent[*kopf.Unstructured, *corev1.Pod]) error {
	phase := string(e.Child.Status.Phase)
	if e.Type == kopf.WatchEventDeleted {
		phase = "Gone"
	}
	log.FromContext(ctx).Info("The worker goes on", "phase", phase)
	e.TryPatch(func(example *kopf.Unstructured) error { return kopf.SetField(example, "status.phase", phase) })
	return nil
}
