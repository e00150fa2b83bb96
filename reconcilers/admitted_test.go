package reconcilers_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestAdmittedNamespaces shows that of the matching namespaces, only the admitted ones are served, as soon as they are
// admitted.
func TestAdmittedNamespaces(t *testing.T) {
	for name, patterns := range map[string][]string{"Names": {"a", "b", "c"}, "Patterns": {"[abc]"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, admitted := memapi.New(), namespaces.NewLive()
				l := namespaceClient{newDirectClient(t, server)}
				for _, one := range []string{"a", "b", "c", "d"} {
					l.createNamespace(one)
				}
				var seen namespaceRecorder
				var lines journal
				log := funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
				stop := operateLogged(t, server, log, reconcilers.Options{
					Namespaces: named(patterns...), AdmittedNamespaces: admitted,
				}, registrationFor(t, "configmaps", seen.handler("c", cause.Create)))
				defer stop()
				want := func(when, called string, told ...string) {
					t.Helper()
					time.Sleep(10 * time.Second)
					if got := seen.take(); got != called {
						t.Errorf("%s: handled in %q, want %q", when, got, called)
					}
					for _, line := range told {
						if strings.Count(lines.String(), line) != 1 {
							t.Errorf("%s: want %s once: %s", when, line, lines.String())
						}
					}
				}
				want("before any namespace is admitted", "")
				admitted.Replace([]string{"a", "d"})
				want("after one of two admitted namespaces matches", "a", `Serving namespaces" "namespaces"=["a"]`)
				admitted.Replace([]string{"b", "d"})
				want("after another namespace is admitted instead", "b", `"appeared"=["b"] "vanished"=["a"]`)
				admitted.Replace([]string{"b"})
				want("after a namespace that does not match is not admitted any more", "",
					"Namespaces appeared or vanished")
			})
		})
	}
}

// TestAllNamespacesAreNotLogged shows that an operator for all namespaces logs nothing about namespaces.
func TestAllNamespacesAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen namespaceRecorder
		var lines journal
		log := funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
		stop := operateLogged(t, memapi.New(), log, reconcilers.Options{},
			registrationFor(t, "configmaps", seen.handler("c", cause.Create)))
		defer stop()
		time.Sleep(10 * time.Second)
		if strings.Contains(lines.String(), "amespaces") {
			t.Errorf("want no line about namespaces: %s", lines.String())
		}
	})
}
