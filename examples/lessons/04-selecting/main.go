// Command 04-selecting handles objects of several kinds, with and without Go types.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("inventory.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})

	// By a Go type, which must be in the scheme.
	kopf.For(op, &v1.Website{}).OnCreate("typed", typed)
	// By a name, with objects that do not have a Go type.
	kopf.ForResource(op, "websites.example.org", "websites").OnUpdate("untyped", untyped)
	// By a name, decoded into a Go type, which need not be in the scheme.
	kopf.ForResourceAs[*corev1.ConfigMap](op, "configmaps").MatchingLabels("site").OnCreate("decoded", decoded)
	// All resources of a category, as in "kubectl get all".
	kopf.ForResource(op, "category=all").OnEvent("workload", seen[*kopf.Unstructured])
	// All resources.
	kopf.ForResource(op, "*").MatchingLabels("audited").OnEvent("audit", seen[*kopf.Unstructured])
	return op
}

func typed(ctx context.Context, c *kopf.Change[*v1.Website]) error {
	log.FromContext(ctx).Info("With the Go type", "title", c.Object.Spec.Title)
	return nil
}

func untyped(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	title, err := kopf.GetField[string](c.Object, "spec.title")
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Without a Go type", "title", title)
	return nil
}

func decoded(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
	log.FromContext(ctx).Info("Decoded", "keys", len(c.Object.Data))
	return nil
}

// seen gets the events of the watch. It stores nothing on the objects.
func seen[T client.Object](ctx context.Context, e *kopf.WatchEvent[T]) error {
	log.FromContext(ctx).Info("Seen", "seenKind", e.Object.GetObjectKind().GroupVersionKind().Kind)
	return nil
}
