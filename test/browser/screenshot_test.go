package browser_test

import (
	"image"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/browser"
)

// All that differs between machines: letters of both generic fonts, bold and slanted ones, marks, colours, a caret.
const sample = `<h1>Databases</h1><p>The <b>main</b> one <i>waits</i>: <code>retry 3</code> ✓ ▸ → ● é</p>
	<input aria-label="filter" autofocus value="name"> <button>Freeze</button>`

func TestScreenshot(t *testing.T) {
	url := serve(t, sample)
	t.Run("Light", func(t *testing.T) {
		browser.Open(t, url, browser.View{Width: 400, Height: 200}).Screenshot("light")
	})
	t.Run("DarkAndSharp", func(t *testing.T) {
		browser.Open(t, url, browser.View{Width: 400, Height: 200, Scale: 2,
			PrefersDark: true}).Screenshot("dark-sharp")
	})
}

func TestScreenshotThatDiffers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: only pictures of Linux are compared")
	}
	url := serve(t, strings.Replace(sample, "retry 3", "retry 8", 1))
	t.Chdir(storedCopy(t, "light"))
	got := play(t, func(t testing.TB) {
		browser.Open(t, url, browser.View{Width: 400, Height: 200}).Screenshot("light")
	})
	if len(got.skips) > 0 {
		t.Skip(got.skips)
	}
	if len(got.failures) != 1 {
		t.Fatalf("one digit is another one, and the failures of the test are %q", got.failures)
	}
	dir := regexp.MustCompile(`difference\.png in ([^\s;]+)`).FindStringSubmatch(got.failures[0])
	if dir == nil {
		t.Fatalf("the failure does not say where the pictures are: %s", got.failures[0])
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir[1]) })
	for _, name := range []string{"actual.png", "difference.png"} {
		if _, err := os.Stat(filepath.Join(dir[1], name)); err != nil {
			t.Errorf("a difference must be stored as %s: %v", name, err)
		}
	}
}

func TestScreenshotThatIsNotStored(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: only pictures of Linux are compared")
	}
	url := serve(t, sample)
	got := play(t, func(t testing.TB) { browser.Open(t, url, browser.View{}).Screenshot("unknown") })
	if len(got.skips) > 0 {
		t.Skip(got.skips)
	}
	if len(got.failures) != 1 || !strings.Contains(got.failures[0], "-update") {
		t.Errorf("a missing picture fails the test until -update stores it: the failures are %q", got.failures)
	}
}

// storedCopy is a folder with a copy of a stored picture, where no -update reaches the original.
func storedCopy(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".png"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "testdata"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "testdata", name+".png"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCompare(t *testing.T) {
	const side = 640 // of 409,600 pixels four may count
	plain := func(width int) *image.NRGBA {
		picture := image.NewNRGBA(image.Rect(0, 0, width, side))
		for i := range picture.Pix {
			picture.Pix[i] = 0xff
		}
		return picture
	}
	cases := map[string]struct {
		reason        string
		width         int
		changedPixels int
		shade         uint8
		tolerable     bool
	}{
		"Size":       {reason: "another size is another layout", width: side + 1},
		"FivePixels": {reason: "more than the share that may differ", width: side, changedPixels: 5, shade: 0},
		"FourPixels": {reason: "as many as may differ", width: side, changedPixels: 4, shade: 0, tolerable: true},
		"Smoothing": {
			reason: "edges of letters are smoothed otherwise by another version",
			width:  side, changedPixels: side, shade: 0xff - browser.ToleratedShade, tolerable: true,
		},
		"Shade": {
			reason: "one step more than smoothing is a difference",
			width:  side, changedPixels: side, shade: 0xff - browser.ToleratedShade - 1,
		},
		"Equal": {reason: "equal pictures have no difference", width: side, tolerable: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			actual := plain(tc.width)
			for i := range tc.changedPixels {
				actual.Set(i, 7, color.NRGBA{R: 0xff, G: tc.shade, B: 0xff, A: 0xff})
			}
			difference := browser.Compare(plain(side), actual)
			if got := difference.Tolerable(); got != tc.tolerable {
				t.Errorf("%s: tolerable is %t, want %t: %s", tc.reason, got, tc.tolerable, difference)
			}
			if difference.Pixels != tc.changedPixels && tc.width == side {
				t.Errorf("%s: %d pixels differ, want %d", tc.reason, difference.Pixels, tc.changedPixels)
			}
		})
	}
}
