package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/kopf-runtime/kopf-runtime/test/browser/programs"
)

// View contains the window and the preferences of a user. The zero value is a window of 1280 by 800 pixels, light, with
// little motion.
type View struct {
	// Width and Height are of the window, in CSS pixels: 1280 and 800 if zero.
	Width, Height int64
	// Scale is the number of device pixels to a CSS pixel: 1 if zero.
	Scale float64
	// PrefersDark is that dark colours are preferred (prefers-color-scheme).
	PrefersDark bool
	// AllowsMotion is that motion is welcome; otherwise it is to be reduced (prefers-reduced-motion).
	AllowsMotion bool
}

// Page is one page in a tab of its own. It belongs to the test that opened it, and is used by one goroutine at a time.
type Page struct {
	t          testing.TB
	url        string
	runActions func(steps ...chromedp.Action[chromedp.Void]) error
	errors     pageErrors
}

// Open shows a page and waits until it has loaded. The tab closes when the test ends, and each error that the page has
// reported until then fails the test, unless [Page.Errors] was asked for it. Without a browser the test is skipped;
// with CI=true in the environment it fails.
func Open(t testing.TB, url string, view View) *Page {
	t.Helper()
	newTab, err := sharedSession.newTab()
	if errors.Is(err, programs.ErrNoChromium) {
		skipOrFail(t, "opening "+url, err)
	}
	if err != nil {
		t.Fatalf("opening %s: %v", url, err)
	}
	p := &Page{t: t, url: url}
	tab, closeTab := newTab(chromedp.WithListener(p.errors.listen))
	p.runActions = func(steps ...chromedp.Action[chromedp.Void]) error {
		ctx, cancel := context.WithTimeoutCause(tab, stepLimit, fmt.Errorf("not within %s", stepLimit))
		defer cancel()
		if err := chromedp.Do(ctx, steps...); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		return nil
	}
	t.Cleanup(closeTab)
	// The context of a tab's first step is that of the tab: it has no deadline.
	if err := chromedp.Do(tab); err != nil {
		t.Fatalf("opening a tab for %s: %v", url, err)
	}
	t.Cleanup(func() {
		for _, message := range p.Errors() {
			t.Errorf("the page %s reported an error: %s", url, message)
		}
	})
	p.do("opening the page", view.emulation(), chromedp.Navigate(url))
	return p
}

// emulation makes the tab such a view, in a language and a time zone that are the same everywhere.
func (v View) emulation() chromedp.Action[chromedp.Void] {
	width, height, scale := cmp.Or(v.Width, 1280), cmp.Or(v.Height, 800), cmp.Or(v.Scale, 1)
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: choose(v.PrefersDark, "dark", "light")},
		{Name: "prefers-reduced-motion", Value: choose(v.AllowsMotion, "no-preference", "reduce")},
	}}
	return chromedp.Steps(
		chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)),
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, media)
			if err != nil {
				return err
			}
			if _, err = cdp.Call(ctx, t, emulation.SetTimezoneOverride,
				emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}); err != nil {
				return err
			}
			// Every tab believes to be the one that has the keyboard.
			_, err = cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled,
				emulation.SetFocusEmulationEnabledParams{Enabled: true})
			return err
		}),
	)
}

// Wait waits until a JavaScript expression is true: "document.querySelectorAll('tr').length > 3". One that throws is
// not true yet. If it does not become true within a minute, the test ends, and the errors of the page are shown.
func (p *Page) Wait(condition string) {
	p.t.Helper()
	last := "undefined"
	err := p.runActions(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			// Asked from here, and not in the page, so that it outlives a navigation and no policy forbids it.
			fine, err := chromedp.Evaluate[bool]("!!("+condition+")")(ctx, t)
			if fine && err == nil {
				return nil
			}
			if err != nil && ctx.Err() == nil {
				last = err.Error()
			} else if err == nil {
				last = "false"
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	}))
	if err != nil {
		p.t.Fatalf("waiting on %s for %s: %v\nlast it was: %s", p.url, condition, err, last)
	}
}

// Press presses keys one after the other, by their names in JavaScript's events, with modifiers before them: "Tab",
// "Shift+Tab", "Enter", "ArrowDown", "Escape", "a". They go to the focused element.
func (p *Page) Press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		press, err := keyPress(key)
		if err != nil {
			p.t.Fatalf("pressing a key on %s: %v", p.url, err)
		}
		p.do("pressing "+key, press)
	}
}

// Read evaluates a JavaScript expression into a Go value, as JSON. A promise is waited for.
func (p *Page) Read(expression string, into any) {
	p.t.Helper()
	p.do("evaluating "+brief(expression), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		asked := "Promise.resolve(" + expression + ").then(value => JSON.stringify(value) ?? 'null')"
		answer, err := chromedp.Evaluate[string](asked, chromedp.EvalAwaitPromise)(ctx, t)
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(answer), into)
	}))
}

// Errors removes and returns the errors that the page has reported so far: uncaught exceptions, console.error, and
// errors of the browser itself, such as missing files. They no longer fail the test.
func (p *Page) Errors() []string {
	// The answer comes after whatever was reported before; without an answer there is nothing more to come.
	_ = p.runActions(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[int]("0")(ctx, t)
		return err
	}))
	return p.errors.takeAll()
}

func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := p.runActions(steps...); err != nil {
		p.t.Fatalf("%s on %s: %v", what, p.url, err)
	}
}

func brief(text string) string {
	const most = 80
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), most)]
}

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
