// Command 11-filtering-handlers restricts handlers to some objects and some changes.
package main

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*kopf.Unstructured]

func main() {
	op := kopf.New("filtering.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")

	// By labels and annotations: a value, its presence, a function, or a selector of kubectl.
	examples.WithLabel("somelabel", "somevalue").OnCreate("with-label", say("the label has the value"))
	examples.WithLabel("somelabel", kopf.Present).WithAnnotation("someannotation", kopf.Absent).
		OnCreate("with-one-without-other", say("the label is there, the annotation is not"))
	examples.WithLabel("somelabel", startsWith("some")).OnCreate("with-prefix", say("the label begins as it should"))
	examples.MatchingLabels("somelabel=othervalue").OnCreate("with-selector", say("never said"))

	// By the whole object, and by combinations of conditions.
	examples.When(kopf.All(isDurable, kopf.Not(isHuge))).OnCreate(
		"when", say("the object is durable, and not huge"),
	)

	// By a field: its value, a change of it, its former and its new value.
	examples.OnCreate("with-field", say("the field has the value"), kopf.InField("spec.field"), kopf.Value("value"))
	examples.OnField("changed", "spec.field", changed)
	examples.OnField(
		"left", "spec.field", say("the field has left its value"), kopf.OldValue("value"), kopf.NewValue(kopf.Present),
	)
	examples.OnField("dropped", "spec.field", say("the field is gone"), kopf.NewValue(kopf.Absent))

	// By the whole change.
	examples.OnUpdate("large", say("more than one thing has changed"), kopf.WhenChange(
		func(_ context.Context, c *Change) bool { return len(c.Diff) > 1 },
	))
}

func say(what string) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, _ *Change) error {
		log.FromContext(ctx).Info("Called: " + what)
		return nil
	}
}

// changed reads both values of its field.
func changed(ctx context.Context, c *Change) error {
	before, after := kopf.FieldChange[string](c)
	log.FromContext(ctx).Info("The field has changed", "from", text(before), "to", text(after))
	return nil
}

func text(value *string) string {
	if value == nil {
		return "nothing"
	}
	return *value
}

func startsWith(prefix string) func(value string, present bool) bool {
	return func(value string, _ bool) bool { return strings.HasPrefix(value, prefix) }
}

func isDurable(_ context.Context, o *kopf.Unstructured) bool {
	return kopf.GetFieldOr(o, "spec.duration", "") != ""
}

func isHuge(_ context.Context, o *kopf.Unstructured) bool {
	return kopf.GetFieldOr(o, "spec.size", 0) > 1000
}
