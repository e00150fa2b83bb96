package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samplePackages is a package with a test of its own, a user with a test, and something that no test comes by.
var samplePackages = map[string]string{
	"low/low.go": `package low

import "time"

type Wait time.Duration

// Small has a comparison that is tested, beside its boundary.
func Small(n int) bool { return n < 10 && !odd(n) }

func odd(n int) bool { return n%2 == 1 }

// Forever ends by itself.
func Forever(n int) (sum int) {
	for n > 0 {
		n--
		sum += n
	}
	return sum
}

func Unseen(d time.Duration) Wait { return Wait(2 * d) }
`,
	"low/low_test.go": `package low_test

import (
	"testing"

	"m/low"
)

func TestSmall(t *testing.T) {
	if !low.Small(4) || low.Small(14) {
		t.Error("small")
	}
}

func TestAlone(t *testing.T) { t.Error("fails without any change") }
`,
	"high/high.go": "package high\n\nimport \"m/low\"\n\nfunc Sum() int { return low.Forever(3) }\n\n" +
		"func Unseen() bool { return !odd() }\n\nfunc odd() bool { return Sum()%2 == 1 }\n",
	"high/high_test.go": `package high

import (
	"testing"

	"m/low"
)

func TestSum(t *testing.T) {
	if Sum() != 3 {
		t.Error("sum")
	}
}

func TestOdd(t *testing.T) {
	if low.Small(5) {
		t.Error("odd")
	}
}
`,
}

func TestCampaign(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	m := writeModule(t, samplePackages)
	got := tried(t, m, "all", "./low", "./high")
	want := []string{
		// A test of the package above knows about odd ones; the one that fails without a change notices nothing.
		"low/low.go:8:35: Small: `n < 10` to `n <= 10` survived the tests of high, low",
		"low/low.go:21:51: Unseen: `2 * d` to `2 / d` is reached by no test",
		"high/high.go:7:29: Unseen: `!odd()` to `odd()` is reached by no test",
		"high/high.go:9:34: odd: `Sum()%2 == 1` to `Sum()%2 != 1` is reached by no test",
		"high/high.go:9:31: odd: `Sum()%2` to `Sum() * 2` is reached by no test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what no test of any package notices (-want, +got):\n%s", diff)
	}
	for _, line := range tried(t, m, "own", "./low") {
		if strings.Contains(line, "Forever") && !strings.HasSuffix(line, "reached by no test") {
			t.Errorf("own tests: %s", line)
		}
	}
}

func tried(t *testing.T, m module, tests string, patterns ...string) []string {
	t.Helper()
	packages, err := m.packages(t.Context(), patterns)
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	targets, err := m.targets(t.Context(), packages, selection{})
	if err != nil {
		t.Fatalf("loading the packages: %v", err)
	}
	if err := m.try(t.Context(), targets, options{tests: tests, workers: 1}); err != nil {
		t.Fatalf("trying the changes: %v", err)
	}
	var out bytes.Buffer
	var report report
	for _, one := range targets {
		report.add(&out, one.name, one.mutants)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}
