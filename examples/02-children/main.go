// Command 02-children creates child objects: a config map for every item, created and deleted with the items, and a
// pod, which is created once.
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

// items declares the desired config maps. Ensure creates missing ones, updates those that differ, and deletes those of
// items that are no longer in the list.
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

// worker creates a pod without Ensure, because the spec of a pod cannot be changed later. The pod has the name of its
// owner: if the handler is called again, the pod exists already, and no second one is created.
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

// report is called for each event of a pod, and patches the status of its owner.
func report(ctx context.Context, e *kopf.ChildEvent[*kopf.Unstructured, *corev1.Pod]) error {
	phase := string(e.Child.Status.Phase)
	if e.Type == kopf.WatchEventDeleted {
		phase = "Gone"
	}
	log.FromContext(ctx).Info("The worker goes on", "phase", phase)
	e.TryPatch(func(example *kopf.Unstructured) error { return kopf.SetField(example, "status.phase", phase) })
	return nil
}
