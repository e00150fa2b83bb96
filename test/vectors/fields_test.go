package vectors_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// abortedTest is a test that records why it was stopped.
type abortedTest struct {
	testing.TB
	failure string
}

func (s *abortedTest) Fatalf(format string, args ...any) {
	s.failure = fmt.Sprintf(format, args...)
	panic(s)
}

// failureOf returns why do stops its test, or an empty string.
func failureOf(t testing.TB, do func(t testing.TB)) (text string) {
	s := &abortedTest{TB: t}
	defer func() {
		if caught := recover(); caught != nil && caught != any(s) {
			panic(caught)
		}
		text = s.failure
	}()
	do(s)
	return ""
}

func TestKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		value    any
		wantStop bool
	}{
		"unknown key":       {"an unknown key stops the test", map[string]any{"a": 1, "c": 1}, true},
		"unknown in fields": {"an unknown key of Fields stops the test", vectors.Fields{"c": 1}, true},
		"no mapping":        {"a list has no keys", []any{"a"}, true},
		"null":              {"a null has no keys", nil, true},
		"known":             {"keys may be absent", map[string]any{"a": 1}, false},
		"known in fields":   {"fields are a mapping like any other", vectors.Fields{"b": 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failureOf(t, func(t testing.TB) {
				vectors.Known(t, tc.value, "a",
					"b")
			}) != ""; got != tc.wantStop {
				t.Errorf("%s: stopped: got %v, want %v", tc.reason, got, tc.wantStop)
			}
		})
	}
}

func TestFailed(t *testing.T) {
	mustFail := map[string]any{"error": "TypeError"}
	for name, tc := range map[string]struct {
		reason           string
		want             any
		err              error
		wantStop, failed bool
	}{
		"missing error":    {"an error is required", mustFail, nil, true, false},
		"unexpected error": {"a result is required", "x", errors.New("no"), true, false},
		"error as a field": {
			"an outcome may have an error beside others", map[string]any{"error": "x", "final": true}, errors.New("no"),
			true, false,
		},
		"expected error": {"its class is for information", mustFail, errors.New("no"), false, true},
		"result":         {"it is still to be compared", "x", nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			failed := false
			got := failureOf(t, func(t testing.TB) {
				failed = vectors.Expected{Value: tc.want}.Failed(t, nil,
					tc.err)
			}) != ""
			if got != tc.wantStop || failed != tc.failed {
				t.Errorf("%s: stopped, failed: got %v, %v, want %v, %v", tc.reason, got, failed, tc.wantStop, tc.failed)
			}
		})
	}
}

func TestFields(t *testing.T) {
	f := vectors.Fields{"text": "x", "flag": true, "mapping": map[string]any{"a": 1}, "list": []any{1}}
	got := []any{
		f.Text("text", "y"), f.Text("flag", "y"), f.Text("none", "y"), f.Flag("flag"), f.Flag("text"),
		f.Mapping("mapping"), f.Mapping("list"), f.List("list"), f.List("mapping"),
	}
	want := []any{"x", "y", "y", true, false, vectors.Fields{"a": 1}, vectors.Fields(nil), []any{1}, []any(nil)}
	if delta := cmp.Diff(want, got); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}

func TestNormal(t *testing.T) {
	double := func(key string, value any) any {
		if text, ok := value.(string); ok && key == "twice" {
			return text + text
		}
		return value
	}
	for name, tc := range map[string]struct {
		reason      string
		value, want any
	}{
		"whole float": {"1.0 equals 1", []any{1.0, 1.5, true}, []any{int64(1), 1.5, true}},
		"no object":   {"only objects are stored as texts", `[1]`, `[1]`},
		"text": {"the form of the text is to be compared, too", "{\"b\": 1.0,\"twice\":\"é\"}\n", map[string]any{
			"object": map[string]any{"b": int64(1), "twice": "éé"}, "compact": false, "ascii": false, "newline": true,
		}},
		"rewritten": {
			"by the key", map[string]any{"twice": "x", "once": "x"}, map[string]any{"twice": "xx", "once": "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, vectors.Normal(tc.value, double)); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	f := vectors.Fields{"int": int64(2), "float": 2.5, "null": nil, "text": "2"}
	for key, want := range map[string]*float64{"int": ptr.To(2.0), "float": ptr.To(2.5), "null": nil, "none": nil} {
		if delta := cmp.Diff(want, vectors.Number(t, f, key)); delta != "" {
			t.Errorf("%s: -want, +got:\n%s", key, delta)
		}
	}
	if failureOf(t, func(t testing.TB) { vectors.Number(t, f, "text") }) == "" {
		t.Error("a text instead of a number stops the test")
	}
}
