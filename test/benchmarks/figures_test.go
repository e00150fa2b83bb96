package benchmarks_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/benchmarks"
)

const output = `# about the machine
goos: linux
pkg: github.com/kopf-runtime/kopf-runtime/storage/diff
cpu: one
BenchmarkCompute/Pod/Equal-2         	     100	      6698 ns/op	       0 B/op	       0 allocs/op
BenchmarkCompute/Pod/OneLeaf-2       	     100	      5891 ns/op	     112 B/op	       3 allocs/op
BenchmarkCompute/Pod/OneLeaf-2       	     100	      5891 ns/op	     112 B/op	       2 allocs/op
BenchmarkUntold-2                    	     100	      5891 ns/op
PASS
ok  	github.com/kopf-runtime/kopf-runtime/storage/diff	0.008s
pkg: github.com/kopf-runtime/kopf-runtime/facade
BenchmarkCompute 	     100	      1.1 rate	      5891 ns/op	     112 B/op	      20 allocs/op
`

func TestRead(t *testing.T) {
	got, err := benchmarks.Read(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := benchmarks.Figures{
		"storage/diff.BenchmarkCompute/Pod/Equal": 0, "storage/diff.BenchmarkCompute/Pod/OneLeaf": 2,
		"facade.BenchmarkCompute": 20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names without processors, the least of all runs (-want, +got):\n%s", diff)
	}
	want = benchmarks.Figures{"facade.BenchmarkCompute": 20}
	if diff := cmp.Diff(want, got.Of("facade.BenchmarkCompute")); diff != "" {
		t.Errorf("of one package (-want, +got):\n%s", diff)
	}
	if got := got.Of("storage/diff.BenchmarkComp"); len(got) != 0 {
		t.Errorf("a part of a benchmark name matches nothing: got %v", got)
	}
}

func TestReadFails(t *testing.T) {
	many := "BenchmarkMany 1 99999999999999999999 allocs/op\n"
	if _, err := benchmarks.Read(strings.NewReader(many)); err == nil {
		t.Error("a malformed figure is an error")
	}
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		reason             string
		recorded, measured benchmarks.Figures
		want               []string
	}{
		"Risen": {
			"more than the margin", benchmarks.Figures{"a": 10, "b": 2}, benchmarks.Figures{"a": 13, "b": 3},
			[]string{"a makes 13 allocations, and made 10", "b makes 3 allocations, and made 2"},
		},
		"FromNothing": {
			"nothing has no margin", benchmarks.Figures{"a": 0}, benchmarks.Figures{"a": 1},
			[]string{"a makes 1 allocations, and made 0"},
		},
		"Unrecorded": {
			"a benchmark that is not compared guards nothing", nil, benchmarks.Figures{"a": 0},
			[]string{"a is not recorded"},
		},
		"Unmeasured": {
			"one that is gone or was renamed guards nothing, either", benchmarks.Figures{"a": 0}, nil,
			[]string{"a is recorded, and was not measured"},
		},
		"Within": {
			"up to the margin, and less", benchmarks.Figures{"a": 10, "b": 9}, benchmarks.Figures{"a": 12, "b": 1}, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, benchmarks.Compare(tc.recorded, tc.measured)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
