package documents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

// layer matches a row of the table of layers: a number, and packages.
var layer = regexp.MustCompile("(?m)^\\| (\\d+) \\| (`[^|]*) \\|$")

// TestLayersOfThePage compares the table of docs/architecture.md with the plan of the layers.
func TestLayersOfThePage(t *testing.T) {
	want, got := map[string]int{}, map[string]int{}
	for _, place := range layers.RepositoryPlan {
		if !place.IsTestKit && !strings.HasSuffix(place.Dir, "/...") && !strings.HasPrefix(place.Dir, "examples/") {
			want[place.Dir] = place.Layer
		}
	}
	for _, row := range layer.FindAllStringSubmatch(read(t, "docs/architecture.md"), -1) {
		number, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.SplitSeq(row[2], ", ") {
			got[strings.Trim(name, "`")] = number
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("layers of packages in docs/architecture.md (-plan, +page):\n%s", d)
	}
}

// packageName matches a package in the text of a page.
var packageName = regexp.MustCompile("`((?:facade|internal|peering|reconcilers|storage|webhooks)/[a-z/]+)`")

// TestPackagesOfThePages checks that the packages exist that docs/architecture.md and its diagrams name.
func TestPackagesOfThePages(t *testing.T) {
	names := map[string]bool{}
	for _, found := range packageName.FindAllStringSubmatch(read(t, "docs/architecture.md"), -1) {
		names[found[1]] = true
	}
	diagram := regexp.MustCompile(`(?:facade|internal|peering|reconcilers|storage|webhooks)/[a-z/]+`)
	for _, file := range []string{"architecture", "gate", "layers"} {
		for _, found := range diagram.FindAllString(read(t, "docs/diagrams/"+file+".d2"), -1) {
			names[found] = true
		}
	}
	if len(names) < 60 {
		t.Errorf("found %d packages", len(names))
	}
	for name := range names {
		if _, err := os.Stat(filepath.Join(root, name, "doc.go")); err != nil {
			t.Errorf("docs/architecture.md: %v", err)
		}
	}
}

// manualRow matches a row of the tables of docs/other-manuals.md: a foreign page, its topic, ours, and the rest.
var manualRow = regexp.MustCompile(`(?m)^\| (\[.*?) \| ([^|]+) \| ([^|]+) \|(.*)\|$`)

// TestOtherManuals checks that each foreign page has a counterpart here, or a reason why it does not.
func TestOtherManuals(t *testing.T) {
	rows, pages := 0, map[string]bool{}
	for _, row := range manualRow.FindAllStringSubmatch(read(t, "docs/other-manuals.md"), -1) {
		rows++
		for _, page := range documents.Links(row[1]) {
			if pages[page] {
				t.Errorf("docs/other-manuals.md has %s twice", page)
			}
			pages[page] = true
		}
		if len(documents.Links(row[3])) == 0 && strings.TrimSpace(row[4]) == "" {
			t.Errorf("docs/other-manuals.md: %s has neither a page here nor a reason", row[1])
		}
	}
	kopf := 0
	for page := range pages {
		if strings.HasPrefix(page, "https://kopf.readthedocs.io/") {
			kopf++
		}
	}
	if kopf != 54 || rows < 80 {
		t.Errorf("docs/other-manuals.md has %d pages of Kopf, not 54, and %d rows", kopf, rows)
	}
}
