// Command 16-indexing looks up other objects in memory, without requests to the API server.
package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	Change = kopf.Change[*kopf.Unstructured]
	Run    = kopf.Task[*kopf.Unstructured]
)

// operator has the indices and the memo of the handlers.
type operator struct {
	phases  *kopf.Index[string, corev1.NamespacePhase] // of namespaces, by name
	byField *kopf.Index[string, string]                // names of examples, by spec.field
	ticks   *kopf.Memo[int]                            // how often the timer has looked at an example
}

func main() {
	op := kopf.New("indexing.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	o := &operator{
		phases:  kopf.NewIndex(kopf.For(op, &corev1.Namespace{}), "phases", phaseOf),
		byField: kopf.NewIndex(examples, "by-field", fieldOf),
		ticks:   kopf.NewMemo[int](examples),
	}
	examples.On("report", kopf.CreateUpdateResume(), o.report)
	examples.Timer("look", time.Second, o.look)
}

func phaseOf(_ context.Context, n *corev1.Namespace) (map[string]corev1.NamespacePhase, error) {
	return map[string]corev1.NamespacePhase{n.Name: n.Status.Phase}, nil
}

func fieldOf(_ context.Context, o *kopf.Unstructured) (map[string]string, error) {
	value := kopf.GetFieldOr(o, "spec.field", "")
	if value == "" {
		return map[string]string{}, nil // objects without the field are not in the index
	}
	return map[string]string{value: o.GetNamespace() + "/" + o.GetName()}, nil
}

// report is called only after all namespaces and all examples are in the indices, also after a restart.
func (o *operator) report(ctx context.Context, c *Change) error {
	value := kopf.GetFieldOr(c.Object, "spec.field", "")
	log.FromContext(ctx).Info("Looked up", "phase", o.phases.Get(c.Object.GetNamespace()), "field", value,
		"itself", slices.Contains(o.byField.Get(value), c.Object.GetNamespace()+"/"+c.Object.GetName()),
		"fields", o.byField.Len() > 0)
	return nil
}

// look counts its calls. A timer is not called concurrently for one object, so the number does not need a lock.
func (o *operator) look(ctx context.Context, r *Run) error {
	count := o.ticks.Of(r.Latest())
	*count++
	log.FromContext(ctx).Info("Looked at it", "times", *count)
	return nil
}
