package browser_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/browser"
	"github.com/kopf-runtime/kopf-runtime/test/browser/programs"
)

// withoutBrowserVariable marks the process in which TestOpen is played without a browser.
const withoutBrowserVariable = "KOPF_RUNTIME_BROWSER_TEST"

func TestOpen(t *testing.T) {
	if os.Getenv(withoutBrowserVariable) == "" {
		t.Skip("it is played by TestNoBrowser")
	}
	browser.Open(t, "about:blank", browser.View{})
}

func TestNoBrowser(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("skipped: browsers are found without PATH")
	}
	cases := map[string]struct {
		reason, ci string
		want       string
		fails      bool
	}{
		"Newcomer": {
			reason: "tests run on a machine with Go alone, and say what to do for more",
			want:   "--- SKIP: TestOpen",
		},
		"CI": {
			reason: "a missing browser fails the tests in CI instead of skipping them",
			ci:     "true",
			want:   "--- FAIL: TestOpen",
			fails:  true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(os.Args[0], "-test.run=^TestOpen$", "-test.v")
			command.Env = append(os.Environ(),
				withoutBrowserVariable+"=yes", "CI="+tc.ci, "PATH="+t.TempDir(), programs.ChromiumVariable+"=")
			out, err := command.CombinedOutput()
			if (err != nil) != tc.fails {
				t.Errorf("%s: the error is %v", tc.reason, err)
			}
			for _, part := range []string{tc.want, "make browser"} {
				if !strings.Contains(string(out), part) {
					t.Errorf("%s: the output has no %q:\n%s", tc.reason, part, out)
				}
			}
		})
	}
}
