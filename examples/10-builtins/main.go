// Command 10-builtins handles built-in kinds: pods, by their Go type and by name, and all kinds of the category "all"
// of kubectl.
package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const overdueLabel = "example.kopf.dev/overdue"

func main() {
	op := kopf.New("builtins.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	// The types of client-go are in the scheme. A cluster has pods of other users: select your own by a label.
	pods := kopf.For(op, &corev1.Pod{}).MatchingLabels("example.kopf.dev/lifetime")
	pods.On("watch-over", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonResume}, watchOver)

	// The name is enough for pods. Other groups also have a resource "pods", such as metrics.k8s.io, but the core group
	// takes precedence.
	kopf.ForResource(op, "pods").MatchingLabels("tier").OnField("tier", "metadata.labels.tier", tier)

	// The category has pods, services, deployments and more. Event handlers do not store anything on the objects.
	kopf.ForResource(op, "category=all").MatchingLabels("example.kopf.dev/lifetime").OnEvent("note", note)
}

// watchOver can wait for hours without a goroutine: the time of the next attempt is stored on the pod, also for the
// next process of the operator.
func watchOver(ctx context.Context, c *kopf.Change[*corev1.Pod]) error {
	lifetime, err := time.ParseDuration(c.Object.Labels["example.kopf.dev/lifetime"])
	if err != nil {
		return kopf.Permanent(err)
	}
	if left := time.Until(c.Object.CreationTimestamp.Add(lifetime)); left > 0 {
		log.FromContext(ctx).Info("A pod is in sight", "left", left.Round(time.Second).String())
		return kopf.Temporary(fmt.Errorf("its time is not over yet"), left)
	}
	log.FromContext(ctx).Info("The time of a pod is over")
	c.Warn("Overdue", "The pod has lived longer than "+lifetime.String())
	c.Patch(func(pod *corev1.Pod) { pod.Labels[overdueLabel] = "true" })
	return nil
}

func tier(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	before, after := kopf.FieldChange[string](c)
	log.FromContext(ctx).Info("The tier has changed", "before", text(before), "after", text(after))
	return nil
}

func text(value *string) string {
	if value == nil {
		return "(none)"
	}
	return *value
}

func note(ctx context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
	log.FromContext(ctx).Info("Something has happened", "event", string(e.Type), "version", e.Object.GetAPIVersion())
	return nil
}
