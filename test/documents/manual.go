package documents

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// reference matches a page of docs in code, messages and manifests, with the address or path before it.
var reference = regexp.MustCompile(`[\w:/.-]*\bdocs/[\w-]+\.md(?:#[\w-]+)?`)

// manualConstant matches an address that package logging makes of its constants.
var manualConstant = regexp.MustCompile(`Base \+ "([^"]+)"`)

// References are the pages and anchors that a file of sources refers to, as paths from the root of the repository.
func References(name, text string) (targets []string) {
	if name == "internal/logging/manual.go" {
		for _, found := range manualConstant.FindAllStringSubmatch(text, -1) {
			targets = append(targets, "docs/"+found[1])
		}
		return targets
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "docs/") { // few lines do, and the pattern takes long
			continue
		}
		for _, found := range reference.FindAllString(line, -1) {
			before, page, _ := strings.Cut(found, "docs/")
			if own := before+"docs/" == logging.ManualBase; own || !strings.Contains(before, "://") {
				targets = append(targets, "docs/"+page)
			}
		}
	}
	return targets
}

// CheckReferences reports references of a file to pages and headings that do not exist, and addresses in Go that do
// not come from package logging.
func CheckReferences(sources fs.FS, name, text string) (problems []error) {
	for _, target := range References(name, text) {
		if err := CheckLink(sources, "README.md", target); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	isSource := path.Ext(name) == ".go" && path.Dir(name) != "internal/logging"
	if isSource && strings.Contains(text, logging.ManualBase) {
		problems = append(problems, fmt.Errorf("%s: take the address of the page from package logging", name))
	}
	return problems
}
