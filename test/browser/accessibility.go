package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"

	"github.com/kopf-runtime/kopf-runtime/test/browser/programs"
)

// Violation is a rule of axe-core that elements of a page break.
type Violation struct {
	// Rule is its name, such as "color-contrast"; Impact is minor, moderate, serious or critical.
	Rule   string `json:"id"`
	Impact string `json:"impact"`
	// Help is the rule, HelpURL its explanation.
	Help    string `json:"help"`
	HelpURL string `json:"helpUrl"`
	// Elements are those that break it.
	Elements []Offender `json:"nodes"`
}

// Offender is an element that breaks a rule.
type Offender struct {
	// Target is the path to the element: CSS selectors, those of frames around it first, as JSON.
	Target json.RawMessage `json:"target"`
	// Summary says what to do about it.
	Summary string `json:"failureSummary"`
}

// String has the rule in the first line, and each element with what to do about it below.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s; %s", v.Rule, v.Impact, v.Help, v.HelpURL)
	for _, element := range v.Elements {
		fmt.Fprintf(&b, "\n  %s: %s", element.Target, strings.ReplaceAll(element.Summary, "\n", "\n    "))
	}
	return b.String()
}

// axe is the script, got once for a process.
var axe = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	script, err := programs.Axe(ctx, os.Stderr)
	return string(script), err
})

// CheckAccessibility fails the test for every violation of axe-core's rules, best practices included, in the present
// state of the page and view.
func (p *Page) CheckAccessibility() {
	p.t.Helper()
	for _, violation := range p.Violations() {
		p.t.Errorf("accessibility of %s: %s", p.url, violation)
	}
}

// Violations are those of axe-core's rules. If axe-core cannot be had, the test is skipped; with CI=true it fails.
func (p *Page) Violations() []Violation {
	p.t.Helper()
	script, err := axe()
	if err != nil {
		skipOrFail(p.t, "checking the accessibility of "+p.url, err)
	}
	p.do("loading axe-core", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool](script+"\n;true")(ctx, t)
		return err
	}))
	var found []Violation
	p.Read("axe.run(document, {resultTypes: ['violations']}).then(results => results.violations)", &found)
	return found
}
