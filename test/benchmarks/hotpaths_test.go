package benchmarks_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/benchmarks"
)

// hotPaths lists the benchmarks of the work for every event of every object, or for every pass.
var hotPaths = map[string][]string{
	"queueing": {
		"reconcilers/internal/source.BenchmarkEvents", "reconcilers/internal/source.BenchmarkQueue",
		"reconcilers/internal/source.BenchmarkEvent",
	},
	"indices": {"reconcilers/indexes.BenchmarkSeen"},
	"essences": {
		"storage/diffbase.BenchmarkBuild", "storage/diffbase.BenchmarkFetch", "storage/diffbase.BenchmarkStore",
		"storage/progress.BenchmarkClear",
	},
	"differences": {"storage/diff.BenchmarkCompute", "storage/diff.BenchmarkReduce"},
	"causes":      {"internal/cause.BenchmarkDetect"},
	"filters":     {"internal/handlers.BenchmarkPrematch", "reconcilers/adapters.BenchmarkInterestInAndSelect"},
	"caches": {
		"internal/compact.BenchmarkNew", "internal/compact.BenchmarkObject",
		"internal/compact.BenchmarkMessage",
	},
	"decoding": {"facade/internal/codec.BenchmarkCodec"},
	"records":  {"storage/progress.BenchmarkFetch", "storage/progress.BenchmarkStore"},
	"patches": {
		"internal/patching.BenchmarkMergeDiff", "internal/patching.BenchmarkPatch",
		"internal/patching.BenchmarkApplyTo", "internal/patching.BenchmarkAdmissionOps",
	},
	"passes": {"reconcilers/changes.BenchmarkPass", "reconcilers/internal/controller.BenchmarkPassAtRest"},
}

// TestAllocations compares allocations with the recorded figures: they rise first when code becomes slower, and are
// comparable between machines.
func TestAllocations(t *testing.T) {
	recorded, measured := readRecorded(t), runBenchmarks(t)
	for path, names := range hotPaths {
		for _, name := range names {
			was, is := recorded.Of(name), measured.Of(name)
			if len(was)+len(is) == 0 {
				t.Errorf("%s: there is no %s", path, name)
			}
			for _, wrong := range benchmarks.Compare(was, is) {
				t.Errorf("%s: %s", path, wrong)
			}
		}
	}
	if t.Failed() {
		t.Log("make bench shows both; if it has to be so, make bench RECORD=yes writes it down")
	}
}

func readRecorded(t *testing.T) benchmarks.Figures {
	t.Helper()
	text, err := os.ReadFile("figures.txt")
	if err != nil {
		t.Fatal(err)
	}
	return figures(t, text)
}

// runBenchmarks runs each benchmark often enough that one-time work does not count; the times do not matter.
func runBenchmarks(t *testing.T) benchmarks.Figures {
	t.Helper()
	var folders, functions []string
	for _, names := range hotPaths {
		for _, name := range names {
			folder, function, _ := strings.Cut(name, ".")
			folders, functions = append(folders, "../../"+folder), append(functions, function)
		}
	}
	slices.Sort(folders)
	arguments := append([]string{
		"test", "-vet=off", "-run=^$", "-bench=^(" + strings.Join(functions, "|") + ")$", "-benchmem",
		"-benchtime=200x",
	}, slices.Compact(folders)...)
	command := exec.CommandContext(t.Context(), "go", arguments...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("running the benchmarks: %v\n%s", err, output)
	}
	return figures(t, output)
}

func figures(t *testing.T, output []byte) benchmarks.Figures {
	t.Helper()
	all, err := benchmarks.Read(bytes.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
