// Command 07-filters restricts handlers to some objects and some changes.
package main

import (
	"context"
	"strings"

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

	// By labels and annotations. A filter returns another selection.
	public := websites.MatchingLabels("tier in (production,preview),!paused")
	public.On("publish", kopf.CreateUpdateResume(), say("Published"))
	websites.WithLabel("paused", kopf.Present).OnUpdate("pause", say("Paused"))
	websites.WithAnnotation("owner", startsWith("team-")).OnCreate("notify", say("Notified the team"))

	// By the whole object.
	websites.When(kopf.All(isLoud, kopf.Not(isShort))).OnUpdate("calm", say("The title is loud"))

	// By the change.
	websites.OnUpdate("grow", say("The title is longer now"), kopf.WhenChange(isLonger))
	return op
}

func say(text string) kopf.ChangeFunc[*v1.Website] {
	return func(ctx context.Context, c *Change) error {
		log.FromContext(ctx).Info(text, "title", c.Object.Spec.Title)
		return nil
	}
}

func startsWith(prefix string) func(value string, present bool) bool {
	return func(value string, _ bool) bool { return strings.HasPrefix(value, prefix) }
}

func isLoud(_ context.Context, w *v1.Website) bool {
	return strings.HasSuffix(w.Spec.Title, "!")
}

func isShort(_ context.Context, w *v1.Website) bool {
	return len(w.Spec.Title) < 5
}

func isLonger(_ context.Context, c *Change) bool {
	return len(c.Object.Spec.Title) > len(c.Old.Spec.Title)
}
