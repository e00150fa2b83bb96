package documents_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// manuals returns the names of the pages for users.
func manuals(t *testing.T) (names []string) {
	t.Helper()
	return append(pages(t), "SECURITY.md", "config/README.md", "examples/README.md")
}

var (
	goName   = regexp.MustCompile(`\bkopf\.([A-Z]\w*)`)
	setting  = regexp.MustCompile(`^(?:Settings\.)?([A-Z]\w*)\.([A-Z]\w*)$`)
	metric   = regexp.MustCompile(`\bkopf_[a-z_]+`)
	mark     = regexp.MustCompile(`\b[DK]-[a-z]+(-[a-z]+)*`)
	flagSpan = regexp.MustCompile(`^--[a-z-]+`)
)

// otherFlags are those of cobra, of Kopf and of kubectl.
var otherFlags = []string{"--help", "--version", "--module", "--wait", "--cascade", "--log-"}

// TestNamesInPages checks that the Go names, settings, metrics, deviations and flags that pages name do exist. Other
// tests compare the tables that have all of them with the sources.
func TestNamesInPages(t *testing.T) {
	exported, _, err := documents.Names(os.DirFS(root), "facade")
	if err != nil {
		t.Fatal(err)
	}
	ofKopf, _ := recordedNames(t)
	forms := newGoForms(t)
	isSection := func(name string) bool {
		section, found := reflect.TypeFor[kopf.Settings]().FieldByName(name)
		return found && strings.HasSuffix(section.Type.Name(), "Settings")
	}
	metrics, deviations := read(t, "docs/metrics.md"), read(t, "docs/deviations.md")
	checked := 0
	for _, page := range manuals(t) {
		text := documents.WithoutBlocks(read(t, page))
		wrong := func(name, where string) { t.Errorf("%s names %s, which is not in %s", page, name, where) }
		for _, span := range documents.Spans(text) {
			for _, found := range goName.FindAllStringSubmatch(span, -1) {
				checked++
				if !slices.Contains(exported, found[1]) && !ofKopf[found[0]] {
					wrong(found[0], "package kopf, and Kopf does not have it")
				}
			}
			if found := setting.FindStringSubmatch(span); found != nil && isSection(found[1]) {
				checked++
				if _, err := forms.handlers.Check("Settings." + found[1] + "." + found[2]); err != nil {
					wrong(span, "kopf.Settings")
				}
			}
			flag := flagSpan.FindString(span)
			if flag != "" && !forms.flags[flag] && !slices.Contains(otherFlags, flag) && page != "docs/devcluster.md" {
				wrong(flag, "docs/command-line.md")
			}
			for _, name := range metric.FindAllString(span, -1) {
				checked++
				row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(familyOf(name)) + "`")
				if !row.MatchString(metrics) {
					wrong(name, "docs/metrics.md")
				}
			}
		}
		for _, name := range mark.FindAllString(text, -1) {
			checked++
			if !strings.Contains(deviations, "\n| "+name+" |") && !strings.Contains(text, name+"-…") {
				wrong(name, "docs/deviations.md")
			}
		}
	}
	if checked < 1000 {
		t.Errorf("found %d names: the test would pass for nothing", checked)
	}
}

// familyOf returns the name of a metric without the suffix of the series of a histogram.
func familyOf(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// TestRunSettings compares the table in docs/embedding.md with the fields of kopf.RunSettings.
func TestRunSettings(t *testing.T) {
	var fields, documented []string
	for _, one := range reflect.VisibleFields(reflect.TypeFor[kopf.RunSettings]()) {
		fields = append(fields, one.Name)
	}
	for _, grid := range documents.Grids(read(t, "docs/embedding.md")) {
		if grid.Head[0] == "Field of `RunSettings`" {
			for _, row := range grid.Rows {
				documented = append(documented, documents.Spans(row[0])...)
			}
		}
	}
	slices.Sort(fields)
	slices.Sort(documented)
	if d := cmp.Diff(fields, documented); d != "" {
		t.Errorf("the table of fields (-kopf.RunSettings, +docs/embedding.md):\n%s", d)
	}
}
