package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// cachedKinds returns the kinds that are read from the cache: secrets if E2E_CACHE is not empty.
func cachedKinds() (kinds []client.Object) {
	if os.Getenv("E2E_CACHE") != "" {
		kinds = append(kinds, &corev1.Secret{})
	}
	return kinds
}

// registerReader registers a handler that reads objects in the namespace named by the label "reads" and prints the
// results.
func registerReader[T client.Object](objects kopf.Selection[T]) {
	const label = "reads"
	objects.MatchingLabels(label).OnCreate("reads", func(ctx context.Context, c *kopf.Change[T]) error {
		key := client.ObjectKey{Namespace: c.Object.GetLabels()[label], Name: "shared"}
		var shared corev1.ConfigMap
		err := c.Client.Get(ctx, key, &shared)
		_, _ = fmt.Fprintf(os.Stdout, "READ %v by Client: %v\n", shared.Data, err)
		err = c.APIReader.Get(ctx, key, &shared)
		_, _ = fmt.Fprintf(os.Stdout, "READ %v by Live: %v\n", shared.Data, err)
		err = c.Client.List(ctx, &corev1.SecretList{}, client.InNamespace(c.Object.GetNamespace()))
		_, _ = fmt.Fprintf(os.Stdout, "LISTED: %v\n", err)
		return nil
	})
}
