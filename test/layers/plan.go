package layers

import "strings"

// Place is where one package, or one whole folder, stands in the house.
type Place struct {
	// Dir is the folder, relative to the root of the repository. A trailing
	// "/..." makes it stand for every package in and under the folder.
	Dir string
	// Layer is the height, 0 at the bottom.
	Layer int
	// Kit marks packages that exist for tests: they may import test
	// frameworks, and no product code may import them.
	Kit bool
	// Only lists import prefixes that are allowed from outside of the module
	// and the standard library. Nil allows everything, an empty list nothing.
	Only []string
	// Rooms says that the first folder below Dir is what counts as one
	// neighbour: packages of one room may import each other freely.
	Rooms bool
	// Exports is how many exported names the package may have; [MaxExports] if
	// it is zero.
	Exports int
}

// Plan is the list of places; the most specific one decides.
type Plan []Place

const (
	layerExamples = 14
	layerTests    = 15
)

// pure is what packages that work on JSON values alone may use: nothing that
// could talk to a cluster.
func pure(more ...string) []string { return append([]string{}, more...) }

// House is the plan of this repository, bottom up. A listed package that does
// not exist (yet) is fine; an existing one that is not listed is a breach.
var House = Plan{
	{Dir: "storage", Layer: 0, Only: pure("sigs.k8s.io/json")},
	{Dir: "storage/asciijson", Layer: 0, Only: pure()},
	{Dir: "storage/diff", Layer: 0, Only: pure()},
	{Dir: "storage/jsontext", Layer: 0, Only: pure("sigs.k8s.io/json")},
	{Dir: "storage/keys", Layer: 0, Only: pure(
		"golang.org/x/crypto/blake2b", "k8s.io/apimachinery/pkg/util/validation",
	)},
	{Dir: "facade/internal/credentials", Layer: 0},
	{Dir: "facade/internal/deepcopy", Layer: 0},
	{Dir: "facade/internal/exitlimit", Layer: 0, Only: pure("github.com/go-logr/logr")},
	{Dir: "facade/internal/normal", Layer: 0, Kit: true, Only: pure("github.com/google/go-cmp/cmp")},
	{Dir: "webhooks/certificates", Layer: 1},
	{Dir: "test/genuine", Layer: 0, Kit: true},
	{Dir: "test/benchmarks/objects", Layer: 0, Kit: true},
	{Dir: "test/growth", Layer: 0, Kit: true},
	{Dir: "test/logkeys", Layer: 0, Kit: true},
	{Dir: "reconcilers/logging", Layer: 0},
	{Dir: "reconcilers/panics", Layer: 0, Only: pure()},
	{Dir: "reconcilers/rawclient", Layer: 0},
	{Dir: "reconcilers/requests", Layer: 0, Only: pure()},
	{Dir: "reconcilers/discovery/discoverytest", Layer: 0, Kit: true},
	{Dir: "reconcilers/internal/resync", Layer: 0},
	{Dir: "facade/facadetest/memapi/internal/schemas", Layer: 0, Kit: true},
	{Dir: "facade/facadetest/memapi", Layer: 1, Kit: true},
	{Dir: "test/vectors", Layer: 0, Kit: true},

	{Dir: "facade/internal/cachedreads", Layer: 1},
	{Dir: "facade/internal/connection", Layer: 1},
	{Dir: "facade/internal/console", Layer: 1},
	{Dir: "facade/internal/liveness", Layer: 1, Only: pure()},
	{Dir: "facade/internal/plainhttp", Layer: 1},
	{Dir: "storage/diffbase", Layer: 1, Only: pure("sigs.k8s.io/json", "k8s.io/apimachinery/pkg/util/json")},
	{Dir: "storage/progress", Layer: 1, Only: pure("sigs.k8s.io/json", "k8s.io/apimachinery/pkg/util/json")},

	{Dir: "facade/internal/freezing", Layer: 3},
	{Dir: "peering", Layer: 2},
	{Dir: "storage/progress/progresstest", Layer: 2, Kit: true},
	{Dir: "reconcilers/cause", Layer: 2},
	{Dir: "reconcilers/conditions", Layer: 2, Only: pure("k8s.io/apimachinery/pkg/util/validation")},
	{Dir: "reconcilers/discovery", Layer: 2},
	{Dir: "reconcilers/namespaces", Layer: 2},
	{Dir: "reconcilers/patching", Layer: 2},
	{Dir: "reconcilers/internal/repeating", Layer: 2},
	{Dir: "reconcilers/internal/fence", Layer: 2},
	{Dir: "reconcilers/internal/timing", Layer: 2},
	{Dir: "reconcilers/requirements", Layer: 2},
	{Dir: "reconcilers/source", Layer: 2},
	{Dir: "reconcilers/compact", Layer: 1},
	{Dir: "reconcilers/compact/compacttest", Layer: 2, Kit: true},
	{Dir: "reconcilers/informers", Layer: 3},
	{Dir: "reconcilers/health", Layer: 2, Only: pure()},
	{Dir: "reconcilers/metrics", Layer: 2, Only: pure("github.com/prometheus/client_golang/prometheus")},
	{Dir: "reconcilers/storages", Layer: 2},

	{Dir: "storage/diffbase/diffbasetest", Layer: 3, Kit: true},
	{Dir: "facade/internal/codec", Layer: 3},
	{Dir: "facade/internal/serving", Layer: 3},
	{Dir: "facade/internal/persistence", Layer: 3},
	{Dir: "peering/attendance", Layer: 3},
	{Dir: "reconcilers/handlers", Layer: 3},
	{Dir: "reconcilers/internal/queue", Layer: 3},

	{Dir: "facade/hierarchies", Layer: 4},
	{Dir: "facade/internal/inplace", Layer: 4},
	{Dir: "facade/internal/commandline", Layer: 9},
	{Dir: "facade/internal/inspection", Layer: 8},
	{Dir: "facade/internal/observation", Layer: 4},
	{Dir: "facade/internal/nested", Layer: 4, Only: pure()},
	{Dir: "reconcilers/execution", Layer: 4},
	{Dir: "reconcilers/handlers/declared", Layer: 4, Kit: true},
	{Dir: "reconcilers/internal/posting", Layer: 4},
	{Dir: "webhooks", Layer: 4},
	{Dir: "webhooks/conditions", Layer: 4},
	{Dir: "webhooks/configurations", Layer: 4},
	{Dir: "webhooks/tunnels", Layer: 4},

	{Dir: "facade/internal/children", Layer: 7},
	{Dir: "facade/internal/rehearsal", Layer: 8},
	{Dir: "reconcilers/adapters", Layer: 5},
	{Dir: "reconcilers/journal", Layer: 5},
	{Dir: "reconcilers/journal/journaltest", Layer: 6, Kit: true},
	{Dir: "reconcilers/journal/overview", Layer: 6},
	{Dir: "reconcilers/journal/console", Layer: 7},
	{Dir: "facade/internal/tracing", Layer: 5},
	{Dir: "reconcilers/execution/executiontest", Layer: 5, Kit: true},

	{Dir: "reconcilers/activities", Layer: 6},
	{Dir: "reconcilers/background", Layer: 6},
	{Dir: "reconcilers/changes", Layer: 6},
	{Dir: "reconcilers/events", Layer: 6},
	{Dir: "reconcilers/indexes", Layer: 6},
	{Dir: "reconcilers/owned", Layer: 6},
	{Dir: "webhooks/review", Layer: 6},
	{Dir: "webhooks/server", Layer: 7},
	{Dir: "webhooks/tunnels/tunnelstest", Layer: 7, Kit: true},
	{Dir: "webhooks/admission", Layer: 8},

	{Dir: "reconcilers/memory", Layer: 7},
	{Dir: "reconcilers/controller", Layer: 8},
	{Dir: "reconcilers/orchestration", Layer: 9},
	{Dir: "reconcilers", Layer: 10},
	{Dir: "facade", Layer: 11, Exports: 147},
	{Dir: "facade/facadetest", Layer: 12, Kit: true},
	{Dir: "facade/facadetest/explorer", Layer: 13, Kit: true},

	{Dir: "examples/...", Layer: layerExamples, Rooms: true},
	{Dir: "test/...", Layer: layerTests, Kit: true, Rooms: true},
}

// place finds where a folder stands: an exact entry wins over a folder's, a
// deeper folder over a shallower one.
func (p Plan) place(dir string) (Place, bool) {
	var best Place
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

// room names the neighbour that dir belongs to at its place.
func (p Place) room(dir string) string {
	root := strings.TrimSuffix(p.Dir, "/...")
	if !p.Rooms || dir == root {
		return dir
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(dir, root+"/"), "/")
	return root + "/" + first
}

// within tells whether dir is root or lies under it.
func within(dir, root string) bool {
	return dir == root || strings.HasPrefix(dir, root+"/")
}
