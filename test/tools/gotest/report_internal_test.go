package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func line(action, where, test, output string) string {
	data, err := json.Marshal(event{Action: action, Package: where, Test: test, Output: output})
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

func TestReport(t *testing.T) {
	tests := map[string]struct {
		reason string
		lines  []string
		want   string
	}{
		"Pass": {
			reason: "a passed package prints only its result",
			lines: []string{
				line("start", "p", "", ""), line("run", "p", "TestA", ""), line(
					"output", "p", "TestA", "a word\n",
				), line("pass", "p", "TestA", ""),
				line("output", "p", "", "PASS\n"), line(
					"output", "p", "", "ok  \tp\t1.0s\n",
				), line("pass", "p", "", ""),
			},
			want: "ok  \tp\t1.0s\n",
		},
		"Fail": {
			reason: "a failed test prints its whole output, and the others nothing",
			lines: []string{
				line("run", "p", "TestA", ""), line("run", "p", "TestB", ""), line(
					"output", "p", "TestB", "fine\n",
				), line("output", "p", "TestA", "=== RUN   TestA\n"),
				line(
					"output", "p", "TestA", "--- FAIL: TestA\n",
				), line("fail", "p", "TestA", ""), line("pass", "p", "TestB", ""),
				line("output", "p", "", "FAIL\n"), line(
					"output", "p", "", "FAIL\tp\t1.0s\n",
				), line("fail", "p", "", ""),
			},
			want: "--- FAIL: TestA\nFAIL\tp\t1.0s\n" + "\n-- what failed, once more:\n-- p: TestA\n--- FAIL: TestA\n",
		},
		"Panic": {
			reason: "a test that never ends has something to say, too",
			lines: []string{
				line("run", "p", "TestA", ""), line("output", "p", "TestA", "panic: oh\n"),
				line("output", "p", "", "FAIL\tp\t1.0s\n"), line("fail", "p", "", ""),
			},
			want: "FAIL\tp\t1.0s\npanic: oh\n" + "\n-- what failed, once more:\n-- p: TestA\npanic: oh\n",
		},
		"Suite": {
			reason: "the repeated output of a suite begins with its first failure",
			lines: []string{
				line("run", "p", "TestA", ""), line("output", "p", "TestA", "Running\n"),
				line("output", "p", "TestA", "  [FAILED] oh\n"), line("fail", "p", "TestA", ""),
			},
			want: "Running\n  [FAILED] oh\n" + "\n-- what failed, once more:\n-- p: TestA\n  [FAILED] oh\n",
		},
		"Long": {
			reason: "the repeated output of a test is limited",
			lines: []string{
				line("run", "p", "TestA", ""), line("output", "p", "TestA", strings.Repeat("x", 2001)+"\n"),
				line("output", "p", "TestA", ""), line("fail", "p", "TestA", ""),
			},
			want: strings.Repeat("x", 2001) + "\n" + "\n-- what failed, once more:\n-- p: TestA\n" +
				strings.Repeat("x", 2000) + "...\n",
		},
		"Build": {
			reason: "a compile error is printed",
			lines: []string{
				`{"ImportPath":"p","Action":"build-output","Output":"p.go:1: no\n"}` + "\n",
				`{"ImportPath":"p","Action":"build-fail"}` + "\n",
			},
			want: "p.go:1: no\n",
		},
		"Text": {
			reason: "a line that is not an event is printed, complete or not",
			lines:  []string{"go: downloading\n", "{}\n", "half"},
			want:   "go: downloading\n{}\nhalf",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			newReport(&out, time.Now).follow(strings.NewReader(strings.Join(tc.lines, "")), time.Hour)
			if out.String() != tc.want {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, out.String(), tc.want)
			}
		})
	}
}

func TestReportSaysWhatIsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		events, write := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			newReport(&out, time.Now).follow(events, 30*time.Second)
		}()
		tell := func(lines ...string) {
			for _, one := range lines {
				if _, err := io.WriteString(write, one); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		}
		time.Sleep(31 * time.Second)
		tell(line("run", "p", "TestA", ""), line("run", "p", "TestA/one", ""))
		time.Sleep(30 * time.Second)
		tell(line("pass", "p", "TestA/one", ""), line("pass", "p", "TestA", ""), line("run", "p", "TestB", ""))
		time.Sleep(30 * time.Second)
		_ = write.Close()
		<-done
		want := "-- 30s: nothing is running yet, or any more; packages are being compiled\n" +
			"-- 1m0s: p: TestA for 29s; 0 have ended\n" +
			"-- 1m30s: p: TestB for 29s; 2 have ended\n"
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", out.String(), want)
		}
	})
}
