package reconcilers_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// setTeamLabel sets or removes a label of a namespace.
func (l namespaceClient) setTeamLabel(name, value string) {
	l.t.Helper()
	namespace := l.object("Namespace", name)
	namespace.SetNamespace("")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":`+value+`}}}`))
	if err := l.Patch(context.Background(), namespace, patch); err != nil {
		l.t.Fatal(err)
	}
}

// TestNamespacesSelectedByLabels shows that namespaces selected by labels are served as long as their labels match.
// Patterns and names must match, too.
func TestNamespacesSelectedByLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		for _, name := range []string{"a1", "a2", "a3", "b1", "c"} {
			l.createNamespace(name)
		}
		l.setTeamLabel("a1", `"x"`)
		l.setTeamLabel("a2", `"y"`)
		l.setTeamLabel("b1", `"x"`)
		l.setTeamLabel("c", `"x"`)
		var seen namespaceRecorder
		connection := &watchCounter{RoundTripper: server, plural: "configmaps"}
		live, by := namespaces.NewLive(), must(labels.Parse("team=x"))
		own := reconcilers.Options{Namespaces: named("a*", "c").WithLabels(by), MatchingNamespaces: live}
		stop := operateAll(t, connection, own, registrationFor(t, "configmaps", seen.handler("c", cause.Create)))
		defer stop()
		want := func(when, called string, served ...string) {
			t.Helper()
			time.Sleep(10 * time.Second)
			if got := seen.take(); got != called {
				t.Errorf("%s: handled in %q, want %q", when, got, called)
			}
			if names, _ := live.Current(); !slices.Equal(names, served) {
				t.Errorf("%s: served are %q, want %q", when, names, served)
			}
			if open := connection.open.Load(); int(open) != len(served) {
				t.Errorf("%s: %d watches, want %d", when, open, len(served))
			}
		}
		want("at the start, with two matching namespaces", "a1 c", "a1", "c")
		l.setTeamLabel("a3", `"x"`)
		want("after a namespace gets the label", "a3", "a1", "a3", "c")
		l.setTeamLabel("a1", `null`)
		l.setTeamLabel("c", `"y"`)
		want("after two namespaces stop matching", "", "a3")
		l.setTeamLabel("c", `"x"`)
		want("after a namespace gets the label again, whose objects are handled already", "", "a3", "c")
		l.deleteNamespace("a3")
		want("after a namespace is removed", "", "c")
	})
}
