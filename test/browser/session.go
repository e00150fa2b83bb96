package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kopf-runtime/kopf-runtime/test/browser/programs"
)

// Limits that only what hangs reaches, also on a machine that does a lot else.
const (
	startLimit = 2 * time.Minute
	stepLimit  = time.Minute
)

// session is the browser of this process. It starts with the first page.
type session struct {
	mu       sync.Mutex
	isOpen   bool
	openTab  func(options ...chromedp.ContextOption) (context.Context, context.CancelFunc)
	err      error
	cleanups []func()
}

var sharedSession session

// Main runs the tests of a package, and ends their browser. It is all that TestMain has to do:
//
//	func TestMain(m *testing.M) { browser.Main(m) }
func Main(m *testing.M) {
	sharedSession.mu.Lock()
	sharedSession.isOpen = true
	sharedSession.mu.Unlock()
	defer sharedSession.end()
	m.Run() // the generated main exits with its result
}

// newTab gives what makes tabs, once there is a browser.
func (s *session) newTab() (func(...chromedp.ContextOption) (context.Context, context.CancelFunc), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOpen {
		return nil, errors.New("there is no browser: TestMain has to call browser.Main")
	}
	if s.openTab == nil && s.err == nil {
		s.err = s.start()
	}
	return s.openTab, s.err
}

func (s *session) start() error {
	program, err := programs.Chromium()
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "kopf-runtime-browser-")
	if err != nil {
		return fmt.Errorf("making a folder for the browser: %w", err)
	}
	s.cleanups = append(s.cleanups, func() { _ = os.RemoveAll(home) })
	fonts, err := installFonts(home)
	if err != nil {
		return err
	}
	env := append(fonts, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "LC_ALL=C.UTF-8")
	options := append(flags(), chromedp.ExecPath(program), chromedp.Env(env...))
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, kill := chromedp.NewContext(allocator)
	s.cleanups = append(s.cleanups, free, func() {
		closing, cancel := context.WithTimeout(ctx, stepLimit)
		defer cancel()
		_ = chromedp.Cancel(closing) // whatever does not close is killed
		kill()
	})
	// A context with a deadline would end the browser with the deadline.
	late := time.AfterFunc(startLimit, kill)
	defer late.Stop()
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	s.openTab = func(options ...chromedp.ContextOption) (context.Context, context.CancelFunc) {
		return chromedp.NewContext(ctx, append(options, chromedp.WithNewBrowserContext())...)
	}
	return nil
}

// end undoes what start has done, the last thing first.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
	s.isOpen, s.openTab, s.cleanups = false, nil, nil
}

// flags returns the flags of a browser that shows no prompts and paints the same everywhere.
func flags() []chromedp.ExecAllocatorOption {
	options := append([]chromedp.ExecAllocatorOption(nil), chromedp.DefaultExecAllocatorOptions[:]...)
	for name, value := range map[string]any{
		"no-sandbox":                true, // the pages are our own, and containers often have no sandbox
		"disable-gpu":               true,
		"disable-quic":              true,
		"disable-component-update":  true,
		"disable-lcd-text":          true,
		"disable-skia-runtime-opts": true, // what only some processors have may round differently
		"font-render-hinting":       "none",
		"force-color-profile":       "srgb",
		"hide-scrollbars":           true,
		"lang":                      "en-US",
		"no-proxy-server":           true, // the pages are on this machine
	} {
		options = append(options, chromedp.Flag(name, value))
	}
	return options
}

// skipOrFail skips a test, or fails it where everything has to be there.
func skipOrFail(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("skipped: %s: %v", what, err)
}

// paintsAlike reports whether pictures from this system can be compared with the stored ones: other systems paint fonts
// differently.
func paintsAlike() bool { return runtime.GOOS == "linux" }
