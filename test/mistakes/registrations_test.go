package mistakes_test

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// deployment is the type of the handled objects.
type deployment = appsv1.Deployment

// Change is the argument of the handlers.
type Change = kopf.Change[*appsv1.Deployment]

func roll(context.Context, *Change) error { return nil }

func scale(context.Context, *Change) error { return nil }

func limit(context.Context, *kopf.Admission[*appsv1.Deployment]) error { return nil }

func check(context.Context, *kopf.Admission[*appsv1.Deployment]) error { return nil }

func poll(context.Context, *kopf.Task[*appsv1.Deployment]) error { return nil }

// registration is a mistake in the way an operator is put together: it does not start.
type registration struct {
	name     string
	register func(op *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment])
}

var registrations = []registration{
	{"No function", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll", nil)
	}},
	{"No id", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("", roll)
	}},
	{"A sentence as the id", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll it out", roll)
	}},
	{"One id for two handlers of a verb", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll", roll)
		deployments.OnCreate("roll", scale)
	}},
	{"One id for a daemon and a timer", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Daemon("poll", poll)
		deployments.Timer("poll", time.Minute, poll)
	}},
	{"A field one letter off", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnField("scale", "spec.replica", roll)
	}},
	{"A label key with dots in a path", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnField("rename", "metadata.labels.app.kubernetes.io/name", roll)
	}},
	{"A path inside of a number", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnField("scale", "spec.replicas.max", roll)
	}},
	{"A text for a number", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnField("scale", "spec.replicas", roll, kopf.NewValue("10"))
	}},
	{"InField on OnField", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnField("scale", "spec.replicas", roll, kopf.InField("spec.paused"))
	}},
	{"A value without a field", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnUpdate("scale", roll, kopf.NewValue(10))
	}},
	{"Value beside NewValue", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnField("scale", "spec.replicas", roll, kopf.Value(1), kopf.NewValue(10))
	}},
	{"A value of nil", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnField("scale", "spec.replicas", roll, kopf.NewValue(nil))
	}},
	{"A bare number as an interval", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Timer("poll", 60, poll)
	}},
	{"A bare number as a timeout", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll", roll, kopf.Timeout(60))
	}},
	{"A bare number as a backoff", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll", roll, kopf.Backoff(30))
	}},
	{"No retries", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll", roll, kopf.Retries(0))
	}},
	{"An option twice", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll", roll, kopf.Retries(3), kopf.Retries(5))
	}},
	{"Sharp without an interval", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Timer("poll", 0, poll, kopf.Sharp())
	}},
	{"Per cent where a share is meant", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Timer("poll", time.Minute, poll, kopf.Jitter(10))
	}},
	{"No selector", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.MatchingLabels("tier==prod,,").OnCreate("roll", roll)
	}},
	{"A label key that cannot be", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.WithLabel("the tier", "prod").OnCreate("roll", roll)
	}},
	{"A label value that cannot be", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.WithLabel("tier", "not so important").OnCreate("roll", roll)
	}},
	{"A number as a label", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.WithLabel("tier", 1).OnCreate("roll", roll)
	}},
	{"No condition", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.When(nil).OnCreate("roll", roll)
	}},
	{"An empty unstructured object", func(op *kopf.Operator, _ kopf.Selection[*appsv1.Deployment]) {
		kopf.For(op, &unstructured.Unstructured{}).OnEvent("log", nil)
	}},
	{"A nil prototype", func(op *kopf.Operator, _ kopf.Selection[*appsv1.Deployment]) {
		var prototype *appsv1.Deployment
		kopf.For(op, prototype).OnCreate("roll", roll)
	}},
	{"A type that the scheme does not know", func(op *kopf.Operator, _ kopf.Selection[*appsv1.Deployment]) {
		kopf.For(op, &Own{}).OnCreate("make", func(context.Context, *kopf.Change[*Own]) error { return nil })
	}},
	{"A resource without a name", func(op *kopf.Operator, _ kopf.Selection[*appsv1.Deployment]) {
		kopf.ForResource(op, "")
	}},
	{"Two versions of one kind", func(op *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.OnCreate("roll", roll)
		kopf.ForResource(op, "apps/v1beta1", "deployments").OnDelete("free", ignore)
	}},
	{"Reasons that do not have the option", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.On("roll", kopf.CreateUpdateResume(), roll, kopf.Optional())
	}},
	{"A policy for another verb", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		patient := kopf.JoinOptions(kopf.Retries(10), kopf.Sharp())
		deployments.OnCreate("roll", roll, patient)
	}},
	{"A redacted field one letter off", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Redacted("spec.templates").OnCreate("roll", roll)
	}},
	{"One id for two validating handlers", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Validate("limit", limit)
		deployments.Validate("limit", check)
	}},
	{"An operation that there is not", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Validate("limit", limit, kopf.Operations("PATCH"))
	}},
	{"A deletion that cannot be changed", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Mutate("limit", limit, kopf.Operations("UPDATE", "DELETE"))
	}},
	{"A scale as a deployment", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		deployments.Validate("limit", limit, kopf.Subresource("scale"))
	}},
	{"Filters of another kind", func(_ *kopf.Operator, deployments kopf.Selection[*appsv1.Deployment]) {
		kopf.ForSubresource[*kopf.Unstructured](deployments.MatchingLabels("tier=prod"), "scale")
	}},
}
