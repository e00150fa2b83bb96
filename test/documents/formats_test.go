package documents_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// formatRows returns the rows of docs/formats.md.
func formatRows(t *testing.T) []documents.FormatRow {
	t.Helper()
	rows := documents.FormatRows(read(t, "docs/formats.md"))
	if len(rows) < 50 {
		t.Fatalf("found %d rows: the comparison would pass for nothing", len(rows))
	}
	return rows
}

// namesOf returns the names in the rows of a section.
func namesOf(t *testing.T, section string) (names []string) {
	t.Helper()
	for _, row := range formatRows(t) {
		if row.Section == section {
			names = append(names, row.Names...)
		}
	}
	return names
}

// TestExamplesOfFormats checks that each example in docs/formats.md is in the file that its row links to.
func TestExamplesOfFormats(t *testing.T) {
	for _, row := range formatRows(t) {
		if len(row.Examples) == 0 || len(row.Files) != 1 {
			t.Errorf("docs/formats.md, %s: the row has %d examples and %d files, want one file",
				row.Name, len(row.Examples), len(row.Files))
			continue
		}
		for _, example := range row.Examples {
			if !documents.Contains(read(t, path.Join("docs", row.Files[0])), example) {
				t.Errorf("docs/formats.md, %s: %s is not in %s", row.Name, example, row.Files[0])
			}
		}
	}
}

// handlerFields are the fields of the status, and the reasons of events, that handlers of the recorded operators
// choose.
var handlerFields = []string{"status.phase", "status.double", "status.checks", "Sized"}

// TestFormatsAreComplete checks that docs/formats.md has everything that the operators of the recorded stories write to
// objects.
func TestFormatsAreComplete(t *testing.T) {
	var known []string
	for _, row := range formatRows(t) {
		known = append(known, row.Names...)
		known = append(known, row.Name) // such as "owner reference"
	}
	files, err := filepath.Glob(root + "/test/traces/testdata/*.golden")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d traces: %v", len(files), err)
	}
	checked, reported := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		name := strings.TrimPrefix(filepath.ToSlash(file), root+"/")
		trace := read(t, name)
		ids := documents.CalledHandlers(trace)
		bodies, err := documents.SentBodies(trace)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, sent := range bodies {
			for _, format := range sent.Formats("widgets.example.org", "kopf.zalando.org") {
				checked[format] = true
				if !reported[format] && !slices.Contains(handlerFields, format) && !isFormat(known, format, ids) {
					reported[format] = true
					t.Errorf("docs/formats.md does not have %s, which is in %s", format, name)
				}
			}
		}
	}
	if len(checked) < 25 {
		t.Errorf("found %v: the comparison would pass for nothing", slices.Sorted(maps.Keys(checked)))
	}
}

// isFormat is true if the name is one of those that are known, with an id of a handler in place of <id>.
func isFormat(known []string, name string, ids []string) bool {
	for _, id := range append([]string{""}, ids...) {
		general := name
		if before, found := strings.CutSuffix(name, id); found && id != "" {
			general = before + "<id>"
		}
		general = strings.NewReplacer("<prefix>/webhooks", "<operator>/webhooks",
			"finalizer widgets.example.org/", "<operator>/").Replace(general)
		if slices.Contains(known, general) {
			return true
		}
	}
	return false
}

// TestKeysOfFormats checks that docs/formats.md has each key that the framework reserves, and no others.
func TestKeysOfFormats(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), root+"/internal/keys/keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reserved := []string{"<id>", "parent-uid"} // the label of children
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !spec.Names[0].IsExported() || len(spec.Values) == 0 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if name := spec.Names[0].Name; ok && name != "KopfPrefix" && name != "ManagedValue" {
			key, _ := strconv.Unquote(literal.Value)
			reserved = append(reserved, strings.TrimSuffix(key, "."))
		}
		return true
	})
	var documented []string
	for _, name := range append(namesOf(t, "On handled objects"), namesOf(t, "On children")...) {
		if key, found := strings.CutPrefix(name, "<prefix>/"); found {
			key, _, _ = strings.Cut(key, "-of")
			if strings.HasPrefix(name, "<prefix>/children") {
				key = strings.TrimSuffix(strings.TrimPrefix(name, "<prefix>/"), ".<id>")
			}
			documented = append(documented, key)
		}
	}
	slices.Sort(reserved)
	slices.Sort(documented)
	if d := cmp.Diff(reserved, slices.Compact(documented)); d != "" {
		t.Errorf("the keys in docs/formats.md differ from internal/keys (-keys, +document):\n%s", d)
	}
}

// TestFieldsOfFormats compares the fields of records of handlers, of children and of peers with those that are written.
func TestFieldsOfFormats(t *testing.T) {
	now := time.Now()
	full := progress.Record{
		Started: &now, Stopped: &now, Delayed: &now, Purpose: ptr.To("create"), Retries: ptr.To[int64](1),
		Success: ptr.To(true), Failure: ptr.To(true), Message: ptr.To("x"), Subrefs: []string{"a"},
		Succeeded: []string{"b"}, Awaited: ptr.To("c"), Until: &now,
		Trace: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
	}
	want := map[string][]string{
		"Records":             slices.Collect(maps.Keys(full.JSONFields())),
		"Records of children": jsonNames(t, "facade/internal/children/record.go"),
		"Peering objects":     peerFields(t),
	}
	for section, fields := range want {
		documented := namesOf(t, section)
		slices.Sort(fields)
		slices.Sort(documented)
		if d := cmp.Diff(fields, documented); d != "" {
			t.Errorf("docs/formats.md, %s (-written, +document):\n%s", section, d)
		}
	}
}

// jsonNames returns the names in the json tags of a file.
func jsonNames(t *testing.T, file string) (names []string) {
	t.Helper()
	for _, found := range regexp.MustCompile(`json:"(\w+)`).FindAllStringSubmatch(read(t, file), -1) {
		names = append(names, found[1])
	}
	return names
}

// peerFields returns the fields of the recorded peering records of an operator.
func peerFields(t *testing.T) (fields []string) {
	t.Helper()
	bodies, err := documents.SentBodies(read(t, "test/traces/testdata/29-pause.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range bodies {
		if strings.Contains(sent.Path, "kopfpeerings/") {
			fields = append(fields, sent.Formats()...)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func TestSentBodies(t *testing.T) {
	const trace = "+0.000s  user POST /api/v1/configmaps → 201\n         application/json\n         a: 1\n" +
		"+0.000s  call create Widget default/one: made/disk #1: success\n" +
		"+0.010s  PATCH /apis/a/v1/widgets/one?x=y → 200\n         application/merge-patch+json\n" +
		"         metadata:\n           annotations:\n             a/made.disk: null\n             b/x: y\n" +
		"           finalizers: [a/finalizer]\n         status:\n           phase: Ready\n" +
		"+0.020s  PATCH /apis/kopf.dev/v1/kopfpeerings/p/status → 200\n         application/merge-patch+json\n" +
		"         status:\n           us:\n             busy: 1\n"
	bodies, err := documents.SentBodies(trace)
	if err != nil || len(bodies) != 2 {
		t.Fatalf("want the two bodies of the operator, got %v, %v", bodies, err)
	}
	got := [][]string{bodies[0].Formats("a"), bodies[1].Formats("a"), documents.CalledHandlers(trace)}
	want := [][]string{{"<prefix>/made.disk", "finalizer a/finalizer", "status.phase"}, {"busy"}, {"made.disk"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the formats of two bodies, and the handlers (-want, +got):\n%s", d)
	}
	if !documents.Contains("a: '{\"b\":\"c\n    d\"}'", `{"b": "c d"}`) || documents.Contains("ab", "ac") {
		t.Error("texts are compared without spaces, and with everything else")
	}
}
