// Command 10-builtins handles kinds that every cluster has: pods, by their Go type and by name, and all that kubectl
// calls "all".
package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const overdue = "example.kopf.dev/overdue"

func main() {
	op := kopf.New("builtins.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	// The types of client-go are known. There are always other people's pods in a cluster: take those that are meant.
	pods := kopf.For(op, &corev1.Pod{}).MatchingLabels("example.kopf.dev/lifetime")
	pods.On("watch-over", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonResume}, watchOver)

	// The name alone would do for pods, too: there are others of that name, such as those of metrics, but the core goes
	// first.
	kopf.ForResource(op, "pods").MatchingLabels("tier").OnField("tier", "metadata.labels.tier", tier)

	// Pods, services, deployments and many more: handlers of events write nothing to them.
	kopf.ForResource(op, "category=all").MatchingLabels("example.kopf.dev/lifetime").OnEvent("note", note)
}

// watchOver waits for hours, if it must, in no goroutine: the pod remembers when the handler is due, and so does its
// next operator.
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
	c.Patch(func(pod *corev1.Pod) { pod.Labels[overdue] = "true" })
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
