// Command 08-fields reacts to changes of single fields.
package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one website.
type Change = kopf.Change[*v1.Website]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites := kopf.For(op, &v1.Website{})

	// Whenever the field changes, also by the creation.
	websites.OnField("title", "spec.title", titleChanged)
	// A mapping is a field, too.
	websites.OnField("labels", "metadata.labels", labelsChanged)
	// Only by an update, and only from one value to another.
	websites.OnUpdate("launch", launch, kopf.InField("metadata.labels.stage"),
		kopf.OldValue("draft"), kopf.NewValue("live"))
	return op
}

// titleChanged gets both values of the field. Nil is a missing value.
func titleChanged(ctx context.Context, c *Change) error {
	before, after := kopf.FieldChange[string](c)
	log.FromContext(ctx).Info("The title has changed", "from", before, "to", after)
	return nil
}

// labelsChanged logs each difference.
func labelsChanged(ctx context.Context, c *Change) error {
	for _, item := range c.Diff {
		log.FromContext(ctx).Info("A label has changed", "what", item.String())
	}
	return nil
}

func launch(ctx context.Context, _ *Change) error {
	log.FromContext(ctx).Info("The website is live")
	return nil
}
