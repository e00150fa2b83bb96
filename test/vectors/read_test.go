package vectors_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

type input struct {
	Body map[string]any `json:"body"`
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "essence.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadFailures(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text string }{
		"no JSON": {"a file cut short has lost cases", `{"family": "essence", "cases": [`},
		"another family": {
			"a file in the wrong place tests the wrong rule",
			`{"family": "diff", "cases": [{"name": "a", "input": {}, "expected": 1}]}`,
		},
		"no cases": {"nothing would be tested", `{"family": "essence", "cases": []}`},
	} {
		t.Run(name, func(t *testing.T) {
			if cases, err := vectors.Read[input](written(t, tc.text)); err == nil {
				t.Errorf("%s: got %v, want an error", tc.reason, cases)
			}
		})
	}
	if _, err := vectors.Read[input](filepath.Join(t.TempDir(), "essence.json")); err == nil {
		t.Error("a file that is missing: want an error")
	}
}

func TestReadProblems(t *testing.T) {
	for name, tc := range map[string]struct{ reason, caseJSON string }{
		"key of a case": {"an unknown key of a case is a problem", `"input": {}, "expected": 1, "more": 1`},
		"key of an input": {
			"a struct has all that its harness knows", `"input": {"body": {}, "more": 1}, "expected": 1`,
		},
		"no input":    {"a case without is none", `"expected": 1`},
		"no expected": {"nothing would be compared", `"input": {}`},
	} {
		t.Run(name, func(t *testing.T) {
			cases, err := vectors.Read[input](written(t, `{"family": "essence", "about": "for readers", "cases": [
				{"name": "bad", `+tc.caseJSON+`}, {"name": "good", "input": {"body": {}}, "expected": 1}]}`))
			if err != nil || len(cases) != 2 {
				t.Fatalf("one bad case is not the end of the others: got %v and error %v", cases, err)
			}
			if cases[0].LoadError == nil || cases[0].Name != "bad" {
				t.Errorf("%s: got %+v, want a problem", tc.reason, cases[0])
			}
			if cases[1].LoadError != nil {
				t.Errorf("the other case: %v", cases[1].LoadError)
			}
		})
	}
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, caseJSON string
		want             any
		skipped          bool
	}{
		"plain": {
			"with no mark, Kopf's result is wanted", `"expected": {"a": 1, "b": 1.0}`,
			map[string]any{"a": int64(1), "b": 1.0}, false,
		},
		"null":    {"a null is a result", `"expected": null`, nil, false},
		"skipped": {"a deviation without a result", `"deviation": ["D-quirk"], "expected": 1`, int64(1), true},
		"here": {
			"the result here goes before", `"deviation": ["D-quirk"], "expected": 1, "expected_here": 2`, int64(2),
			false,
		},
		"null here": {
			"a null here is a result as well", `"deviation": ["D-quirk"], "expected": 1, "expected_here": null`, nil,
			false,
		},
		"no marks":      {"an empty list of marks is none", `"deviation": [], "expected": 1`, int64(1), false},
		"reference":     {"a standing skips nothing", `"standing": "reference", "expected": 1`, int64(1), false},
		"here unmarked": {"the result here needs no mark", `"expected": 1, "expected_here": 2`, int64(2), false},
		"error expected": {
			"an error is a result, too", `"expected": {"error": "TypeError"}`, map[string]any{"error": "TypeError"},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cases, err := vectors.Read[input](
				written(
					t, `{"family": "essence", "cases": [{"name": "a", "input": {"body": {"x": 1}}, `+tc.caseJSON+`}]}`,
				),
			)
			if err != nil || len(cases) != 1 {
				t.Fatalf("%s: got %v and error %v, want one case", tc.reason, cases, err)
			}
			if delta := cmp.Diff(tc.want, cases[0].Want.Value); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
			if got := cases[0].Skipped(); got != tc.skipped {
				t.Errorf("%s: skipped: got %v, want %v", tc.reason, got, tc.skipped)
			}
			if delta := cmp.Diff(input{Body: map[string]any{"x": int64(1)}}, cases[0].Input); delta != "" {
				t.Errorf("the input: -want, +got:\n%s", delta)
			}
		})
	}
}

func TestReadContext(t *testing.T) {
	path := written(t, `{"family": "essence", "context": {"body": {"shared": 1.5}}, "cases": [
		{"name": "silent", "input": {}, "expected": 1}, {"name": "own", "input": {"body": {"x": 1}}, "expected": 1}]}`)
	cases, err := vectors.Read[input](path)
	if err != nil || len(cases) != 2 {
		t.Fatalf("got %v and error %v", cases, err)
	}
	want := []input{{Body: map[string]any{"shared": 1.5}}, {Body: map[string]any{"x": int64(1)}}}
	if delta := cmp.Diff(want, []input{cases[0].Input, cases[1].Input}); delta != "" {
		t.Errorf("what all cases share is in each that does not say otherwise: -want, +got:\n%s", delta)
	}
}
