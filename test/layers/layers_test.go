package layers_test

import (
	"os"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

// TestThisRepository holds the sources around it to the plan and the rules.
func TestThisRepository(t *testing.T) {
	tree, err := layers.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatalf("loading the repository: %v", err)
	}
	if len(tree.Packages) == 0 {
		t.Fatal("no packages were found: the checks below would pass for nothing")
	}
	t.Run("walls", func(t *testing.T) { report(t, layers.CheckImports(tree, layers.RepositoryPlan)) })
	t.Run("kits", func(t *testing.T) { report(t, layers.CheckTestKits(tree, layers.RepositoryPlan)) })
	t.Run("exports", func(t *testing.T) {
		for _, f := range layers.Exports(tree, layers.RepositoryPlan) {
			t.Logf("%3d of %d exported names in %s", f.Exports, f.Limit, f.Dir)
		}
		report(t, layers.CheckExportCounts(tree, layers.RepositoryPlan))
	})
	t.Run("families", func(t *testing.T) {
		report(t, layers.CheckRestrictedTypes(tree, layers.RepositoryPlan, layers.RestrictedFamily))
	})
	t.Run("guards", func(t *testing.T) {
		report(t, layers.CheckPanicGuards(tree, layers.RepositoryPlan, layers.GuardedFuncs))
	})
	t.Run("arrows", func(t *testing.T) {
		breaches, err := layers.CheckArrows(os.DirFS("../.."), tree, layers.RepositoryPlan)
		if err != nil {
			t.Fatal(err)
		}
		report(t, breaches)
	})
	t.Run("rules", func(t *testing.T) { report(t, layers.Rules(tree)) })
	t.Run("promises", func(t *testing.T) { report(t, layers.Promises(tree, layers.Promised)) })
	t.Run("replacements", func(t *testing.T) {
		breaches, err := layers.Replacements(os.DirFS("../.."), layers.Promised)
		if err != nil {
			t.Fatal(err)
		}
		report(t, breaches)
	})
	t.Run("types", func(t *testing.T) {
		breaches, err := layers.ForeignTypes(os.DirFS("../.."), layers.Promised)
		if err != nil {
			t.Fatal(err)
		}
		report(t, breaches)
	})
}

func report(t *testing.T, breaches []layers.Breach) {
	t.Helper()
	for _, b := range breaches {
		t.Error(b)
	}
}
