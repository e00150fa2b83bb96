package layers

import "strings"

// PackageRule is where one package, or one whole folder, stands in the house.
type PackageRule struct {
	// Dir is the folder, relative to the root of the repository. A trailing
	// "/..." makes it stand for every package in and under the folder.
	Dir string
	// Layer is the height, 0 at the bottom.
	Layer int
	// IsTestKit marks packages that exist for tests: they may import test
	// frameworks, and no product code may import them.
	IsTestKit bool
	// AllowedImports lists import prefixes that are allowed from outside of the module
	// and the standard library. Nil allows everything, an empty list nothing.
	AllowedImports []string
	// GroupsByFolder says that the first folder below Dir is what counts as one
	// neighbour: packages of one room may import each other freely.
	GroupsByFolder bool
	// MaxUpward is how many arrows between the files of the package may point upward; [MaxUpwardPercent] of all if it
	// is zero.
	MaxUpward int
	// Exports is how many exported names the package may have; [MaxExports] if
	// it is zero.
	Exports int
}

// Plan is the list of places; the most specific one decides.
type Plan []PackageRule

const (
	layerExamples = 16
	layerTests    = 17
)

// standardLibraryAnd is what packages that work on JSON values alone may use: nothing that
// could talk to a cluster.
func standardLibraryAnd(more ...string) []string { return append([]string{}, more...) }

// RepositoryPlan is the plan of this repository, bottom up. A listed package that does
// not exist (yet) is fine; an existing one that is not listed is a breach.
var RepositoryPlan = Plan{
	{Dir: "config", Layer: 0, AllowedImports: standardLibraryAnd()},
	{Dir: "storage", Layer: 1, AllowedImports: standardLibraryAnd("sigs.k8s.io/json")},
	{Dir: "internal/asciijson", Layer: 1, AllowedImports: standardLibraryAnd()},
	{Dir: "storage/diff", Layer: 0, AllowedImports: standardLibraryAnd()},
	{Dir: "internal/jsontext", Layer: 0, AllowedImports: standardLibraryAnd("sigs.k8s.io/json")},
	{Dir: "internal/keys", Layer: 1, AllowedImports: standardLibraryAnd(
		"golang.org/x/crypto/blake2b", "k8s.io/apimachinery/pkg/util/validation",
	)},
	{Dir: "facade/internal/credentials", Layer: 1},
	{Dir: "facade/facadetest/internal/normal", Layer: 1, IsTestKit: true,
		AllowedImports: standardLibraryAnd("github.com/google/go-cmp/cmp")},
	{Dir: "webhooks/certificates", Layer: 2},
	{Dir: "test/python", Layer: 0, IsTestKit: true, AllowedImports: standardLibraryAnd()},
	{Dir: "test/genuine", Layer: 1, IsTestKit: true},
	{Dir: "test/benchmarks/objects", Layer: 0, IsTestKit: true},
	{Dir: "test/growth", Layer: 0, IsTestKit: true},
	{Dir: "test/storms", Layer: 0, IsTestKit: true, AllowedImports: standardLibraryAnd()},
	{Dir: "test/logkeys", Layer: 0, IsTestKit: true},
	{Dir: "internal/logging", Layer: 1},
	{Dir: "internal/panics", Layer: 1, AllowedImports: standardLibraryAnd()},
	{Dir: "test/kits/discoverytest", Layer: 1, IsTestKit: true},
	{Dir: "internal/transport", Layer: 2},
	{Dir: "facade/facadetest/internal/standstill", Layer: 1, IsTestKit: true,
		AllowedImports: standardLibraryAnd("github.com/google/go-cmp/cmp")},
	{Dir: "facade/facadetest/memapi/internal/schemas", Layer: 1, IsTestKit: true},
	{Dir: "facade/facadetest/memapi", Layer: 2, IsTestKit: true},
	{Dir: "facade/facadetest/internal/reviewing", Layer: 3, IsTestKit: true},
	{Dir: "test/vectors", Layer: 0, IsTestKit: true},

	{Dir: "facade/internal/console", Layer: 2},
	{Dir: "storage/diffbase", Layer: 2, AllowedImports: standardLibraryAnd("sigs.k8s.io/json",
		"k8s.io/apimachinery/pkg/util/json")},
	{Dir: "storage/progress", Layer: 2, AllowedImports: standardLibraryAnd("sigs.k8s.io/json",
		"k8s.io/apimachinery/pkg/util/json")},

	{Dir: "internal/controls", Layer: 3, AllowedImports: standardLibraryAnd("sigs.k8s.io/json",
		"k8s.io/apimachinery/pkg/util/json")},
	{Dir: "peering", Layer: 3, Exports: 28},
	{Dir: "test/vectors/progresstest", Layer: 3, IsTestKit: true},
	{Dir: "internal/cause", Layer: 3},
	{Dir: "internal/conditions", Layer: 3,
		AllowedImports: standardLibraryAnd("k8s.io/apimachinery/pkg/util/validation")},
	{Dir: "internal/discovery", Layer: 3, Exports: 28},
	{Dir: "internal/namespaces", Layer: 3},
	{Dir: "internal/patching", Layer: 3, Exports: 26},
	{Dir: "reconcilers/internal/source", Layer: 3},
	{Dir: "internal/compact", Layer: 2},
	{Dir: "test/kits/compacttest", Layer: 3, IsTestKit: true},
	{Dir: "reconcilers/internal/informers", Layer: 5},
	{Dir: "reconcilers/health", Layer: 3, AllowedImports: standardLibraryAnd()},
	{Dir: "internal/metrics", Layer: 3,
		AllowedImports: standardLibraryAnd("github.com/prometheus/client_golang/prometheus")},
	{Dir: "internal/storages", Layer: 3},

	{Dir: "test/vectors/diffbasetest", Layer: 4, IsTestKit: true},
	{Dir: "facade/internal/codec", Layer: 4},
	{Dir: "facade/internal/serving", Layer: 4},
	{Dir: "peering/election", Layer: 4},
	{Dir: "peering/sharding", Layer: 4},
	{Dir: "internal/handlers", Layer: 4, Exports: 36},

	{Dir: "facade/hierarchies", Layer: 5},
	{Dir: "facade/internal/clusterops", Layer: 5},
	{Dir: "facade/internal/commandline", Layer: 12},
	{Dir: "facade/internal/draining", Layer: 10},
	{Dir: "internal/execution", Layer: 5, Exports: 27},
	{Dir: "test/vectors/declared", Layer: 5, IsTestKit: true},
	{Dir: "reconcilers/internal/posting", Layer: 5},
	{Dir: "webhooks/configurations", Layer: 5},
	{Dir: "webhooks/tunnels", Layer: 5},

	{Dir: "facade/internal/children", Layer: 9},
	{Dir: "facade/internal/registry", Layer: 9},
	{Dir: "facade/internal/defaults", Layer: 8},
	{Dir: "facade/internal/kit", Layer: 10},
	{Dir: "facade/internal/clusterneeds", Layer: 10},
	{Dir: "facade/internal/manifests", Layer: 11},
	{Dir: "reconcilers/adapters", Layer: 6, Exports: 27},
	{Dir: "reconcilers/journal", Layer: 6},
	{Dir: "test/kits/journaltest", Layer: 8, IsTestKit: true},
	{Dir: "internal/inspection", Layer: 9},
	{Dir: "facade/internal/tracing", Layer: 6},
	{Dir: "test/vectors/executiontest", Layer: 6, IsTestKit: true},

	{Dir: "reconcilers/kind", Layer: 7},

	{Dir: "facade/internal/activities", Layer: 8},
	{Dir: "reconcilers/internal/background", Layer: 8},
	{Dir: "reconcilers/changes", Layer: 8},
	{Dir: "reconcilers/events", Layer: 8},
	{Dir: "reconcilers/indexes", Layer: 8},
	{Dir: "reconcilers/owned", Layer: 8},
	{Dir: "webhooks/review", Layer: 8},
	{Dir: "webhooks/internal/server", Layer: 9},
	{Dir: "webhooks/tunnels/tunnelstest", Layer: 9, IsTestKit: true},
	{Dir: "webhooks/admission", Layer: 10},

	{Dir: "reconcilers/internal/memory", Layer: 9},
	{Dir: "reconcilers/internal/controller", Layer: 10},
	{Dir: "reconcilers/internal/orchestration", Layer: 11},
	{Dir: "reconcilers", Layer: 12},
	{Dir: "facade/internal/planning", Layer: 13},
	{Dir: "facade/internal/program", Layer: 13},
	{Dir: "facade/internal/reviews", Layer: 13},
	{Dir: "facade", Layer: 14, Exports: 117, MaxUpward: 15},
	{Dir: "facade/facadetest", Layer: 15, IsTestKit: true},
	{Dir: "facade/facadetest/devcluster/...", Layer: 16, IsTestKit: true},
	{Dir: "facade/facadetest/explorer", Layer: 16, IsTestKit: true},

	{Dir: "examples/...", Layer: layerExamples, GroupsByFolder: true},
	{Dir: "examples/getting-started/api/v1", Layer: layerExamples - 1}, // the type of all lessons
	{Dir: "examples/lessons/session", Layer: layerExamples, IsTestKit: true},
	{Dir: "test/...", Layer: layerTests, IsTestKit: true, GroupsByFolder: true},
}

// ruleFor finds where a folder stands: an exact entry wins over a folder's, a
// deeper folder over a shallower one.
func (p Plan) ruleFor(dir string) (PackageRule, bool) {
	var best PackageRule
	found := false
	for _, one := range p {
		if one.Dir == dir {
			return one, true
		}
		root, whole := strings.CutSuffix(one.Dir, "/...")
		if whole && within(dir, root) && len(one.Dir) > len(best.Dir) {
			best, found = one, true
		}
	}
	return best, found
}

// groupOf names the neighbour that dir belongs to at its place.
func (p PackageRule) groupOf(dir string) string {
	root := strings.TrimSuffix(p.Dir, "/...")
	if !p.GroupsByFolder || dir == root {
		return dir
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(dir, root+"/"), "/")
	return root + "/" + first
}

// within reports whether dir is root or below it.
func within(dir, root string) bool {
	return dir == root || strings.HasPrefix(dir, root+"/")
}
