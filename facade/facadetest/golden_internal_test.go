package facadetest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStaleGoldenFiles tests the check at the end of a run. No single test can reach that check through the public API.
func TestStaleGoldenFiles(t *testing.T) {
	if isPartialRun() {
		t.Skip("stale files are not checked with -run, -skip or -short")
	}
	folder := t.TempDir()
	used, stale := filepath.Join(folder, "used.golden"), filepath.Join(folder, "stale.golden")
	t.Setenv(updateVariable, "1")
	Golden(t, used, "text")
	writeGoldenFile(t, stale, "text")
	cases := map[string]struct {
		reason     string
		testCode   int
		patterns   []string
		want       int
		wantOutput string
	}{
		"Used":    {reason: "a file with a test is not stale", patterns: []string{used}},
		"Stale":   {"a file without a test is reported", 0, []string{filepath.Join(folder, "*.golden")}, 1, stale},
		"Nowhere": {"a pattern without files is an error", 0, []string{folder + "/*.txt"}, 1, "has no files"},
		"Pattern": {"an invalid pattern is an error", 0, []string{"["}, 1, `the pattern "["`},
		"Failed":  {"stale files are ignored after a failure", 3, []string{stale}, 3, ""},
	}
	for name, tc := range cases {
		var told strings.Builder
		code := runAndCheckFiles(&told, func() int { return tc.testCode }, tc.patterns)
		if code != tc.want || !strings.Contains(told.String(), tc.wantOutput) || tc.wantOutput == "" && told.Len() > 0 {
			t.Errorf("%s: %s: got %d, %s", name, tc.reason, code, told.String())
		}
		if strings.Contains(told.String(), used) {
			t.Errorf("%s: %s: a used file must not be reported: %s", name, tc.reason, told.String())
		}
	}
}

// TestTheOrderOfCalls shows that calls of one second are sorted. In whole runs, only an operator with two threads has
// such calls, and not always.
func TestTheOrderOfCalls(t *testing.T) {
	zero := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	call := func(name, handler, lane string, after time.Duration) HandlerCall {
		c := HandlerCall{
			Handler: handler,
			Reason:  "create",
			Kind:    "Database",
			Name:    name,
			lane:    lane,
			Outcome: "success",
		}
		c.Began = zero.Add(after)
		c.Ended, c.moment = c.Began, newMoment(c.Began, zero)
		return c
	}
	calls := []HandlerCall{
		{Reason: "startup", Handler: "open", moment: newMoment(zero.Add(-time.Hour), zero)},
		call("b", "make", "", 0), call("a", "seen", "seen", 0), call("a", "make", "", 100*time.Millisecond),
		call("a", "begin", "", 200*time.Millisecond), call("b", "end", "", time.Minute-time.Millisecond),
		call("a", "end", "", time.Minute+time.Millisecond),
		{Reason: "cleanup", Handler: "close", moment: newMoment(zero.Add(time.Minute), zero)},
	}
	const want = `# calls
0s        startup: open #0: running
0s        create Database a: make #0: success
0s        create Database a: begin #0: success
0s        create Database a: seen #0: success
0s        create Database b: make #0: success
1m0s      create Database a: end #0: success
1m0s      create Database b: end #0: success
1m0s      cleanup: close #0: running
`
	if got, err := formatParts([]any{calls}); err != nil || got != want {
		t.Errorf("in virtual time: %v\n%s", err, shortUnifiedDiff(want, got))
	}
	for i := range calls {
		calls[i].moment = newMoment(time.Now(), zero)
	}
	const untimed = `# calls
startup: open #0: running
create Database a: make #0: success
create Database a: begin #0: success
create Database a: end #0: success
create Database a: seen #0: success
create Database b: make #0: success
create Database b: end #0: success
cleanup: close #0: running
`
	if got, err := formatParts([]any{calls}); err != nil || got != untimed {
		t.Errorf("in real time: %v\n%s", err, shortUnifiedDiff(untimed, got))
	}
}
