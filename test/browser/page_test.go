package browser_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/browser"
)

func (r *recorder) Helper()           {}
func (r *recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skips = append(r.skips, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// play runs what a test would do, to its end, and gives its failures.
func play(t *testing.T, test func(t testing.TB)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.runCleanups()
		test(r)
	}()
	<-ended
	return r
}

func TestErrorsFailTheTest(t *testing.T) {
	cases := map[string]struct {
		reason, body, want string
	}{
		"Exception": {
			reason: "an uncaught exception fails the test",
			body:   `<script>throw new Error("no such row")</script>`,
			want:   "no such row",
		},
		"Rejection": {
			reason: "a promise that fails is an exception as well",
			body:   `<script>Promise.reject(new Error("no answer"))</script>`,
			want:   "no answer",
		},
		"Console": {
			reason: "the page itself says that it is an error",
			body:   `<script>console.error("lost", 3)</script>`,
			want:   "console.error: lost 3",
		},
		"NotFound": {
			reason: "a missing file fails the test",
			body:   `<img alt="" src="/missing.png">`,
			want:   "/missing.png",
		},
		"Policy": {
			reason: "what the page's policy forbids is not loaded",
			body:   `<script src="http://127.0.0.1:1/foreign.js"></script>`,
			want:   "Content Security Policy",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := serve(t, tc.body)
			browser.Open(t, url, browser.View{}).Errors() // or this test is skipped

			got := play(t, func(t testing.TB) { browser.Open(t, url, browser.View{}) }).failures
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("%s: the failures of the test are %q, want one with %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestErrorsThatWereTaken(t *testing.T) {
	url := serve(t, `<script>console.log("fine"); console.error("expected")</script>`)
	var taken []string
	got := play(t, func(t testing.TB) { taken = browser.Open(t, url, browser.View{}).Errors() })
	if len(got.skips) > 0 {
		t.Skip(got.skips)
	}
	if diff := cmp.Diff([]string{"console.error: expected"}, taken); diff != "" {
		t.Errorf("only errors are taken (-want, +got):\n%s", diff)
	}
	if len(got.failures) > 0 {
		t.Errorf("who has taken an error answers for it, but the test failed: %q", got.failures)
	}
}

func TestWait(t *testing.T) {
	page := browser.Open(t, serve(t, `<script>
		window.asked = 0;
		window.ask = () => { asked++; if (asked < 3) throw new Error("not there yet"); return asked > 4 };
	</script>`), browser.View{})
	page.Wait(`ask()`)
	var asked int
	page.Read(`asked`, &asked)
	if asked != 5 {
		t.Errorf("the condition throws, is false, and is true the fifth time; it was asked %d times", asked)
	}
}

func TestPress(t *testing.T) {
	page := browser.Open(t, serve(t, `<button id="one">1</button><button id="two">2</button>
		<input id="name" aria-label="name"><script>
			window.clicks = [];
			for (const b of document.querySelectorAll("button")) b.onclick = () => clicks.push(b.id);
		</script>`), browser.View{})
	page.Press("Tab", "Tab", "Enter", "Shift+Tab", "Space", "Tab", "Tab", "a", "B")
	type state struct {
		Clicks      []string
		Focus, Name string
	}
	var got state
	page.Read(`({Clicks: clicks, Focus: document.activeElement.id, Name: document.querySelector("#name").value})`, &got)
	want := state{Clicks: []string{"two", "one"}, Focus: "name", Name: "aB"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys go to what has the focus (-want, +got):\n%s", diff)
	}
}

func TestPressUnknown(t *testing.T) {
	url := serve(t, ``)
	got := play(t, func(t testing.TB) { browser.Open(t, url, browser.View{}).Press("Shift+Tabulator") })
	if len(got.skips) > 0 {
		t.Skip(got.skips)
	}
	if len(got.failures) != 1 || !strings.Contains(got.failures[0], `no key "Tabulator"`) {
		t.Errorf("an unknown key fails the test: the failures are %q", got.failures)
	}
}

func TestView(t *testing.T) {
	type seen struct {
		Width, Height, Scale int
		Dark, Reduced        bool
		Zone, Language       string
	}
	const look = `({Width: innerWidth, Height: innerHeight, Scale: devicePixelRatio,
		Dark: matchMedia("(prefers-color-scheme: dark)").matches,
		Reduced: matchMedia("(prefers-reduced-motion: reduce)").matches,
		Zone: Intl.DateTimeFormat().resolvedOptions().timeZone, Language: navigator.language})`
	cases := map[string]struct {
		reason string
		view   browser.View
		want   seen
	}{
		"Zero": {
			reason: "the defaults are the same on every machine",
			want:   seen{Width: 1280, Height: 800, Scale: 1, Reduced: true, Zone: "UTC", Language: "en-US"},
		},
		"All": {
			reason: "a page has to fit a small window, and to respect preferences",
			view:   browser.View{Width: 400, Height: 300, Scale: 2, PrefersDark: true, AllowsMotion: true},
			want:   seen{Width: 400, Height: 300, Scale: 2, Dark: true, Zone: "UTC", Language: "en-US"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got seen
			browser.Open(t, serve(t, ``), tc.view).Read(look, &got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
