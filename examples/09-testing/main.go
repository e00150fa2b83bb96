// Command 09-testing sends a letter for each object. The folder shows all kinds of tests of an operator.
package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func main() { kopf.Main(newOperator(logged{})) }

// logged is a post that only logs the letters.
type logged struct{}

func (logged) send(ctx context.Context, to, text string) error {
	log.FromContext(ctx).Info("Sending a letter", "to", to, "text", text)
	return nil
}
