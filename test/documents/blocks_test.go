package documents_test

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

func TestBlocks(t *testing.T) {
	document := "<!-- a.txt -->\n```\n$ kubectl get pods\n```\n" +
		"```sh\n# Needs a cluster that runs containers.\nkubectl logs a\n```\n" +
		"```sh\nexport A=b\n\nkubectl get pods | while read -r name; do\n  echo \"$name\"\ndone\n" +
		"kubectl get pods \\\n  -A\n```\n"
	want := []documents.Block{
		{Line: 3, File: "a.txt", Text: "$ kubectl get pods\n"},
		{Line: 6, Language: "sh", Text: "# Needs a cluster that runs containers.\nkubectl logs a\n"},
		{Line: 10, Language: "sh",
			Text: "export A=b\n\nkubectl get pods | while read -r name; do\n  echo \"$name\"\ndone\n" +
				"kubectl get pods \\\n  -A\n"},
	}
	got := documents.Blocks(document)
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("blocks (-want, +got):\n%s", d)
	}
	if needs := got[1].Needs(); needs != "a cluster that runs containers" {
		t.Errorf("the second block needs %q", needs)
	}
	commands := []string{
		"export A=b", "kubectl get pods | while read -r name; do\n  echo \"$name\"\ndone", "kubectl get pods -A",
	}
	if d := cmp.Diff(commands, got[2].Commands()); d != "" {
		t.Errorf("commands of the third block (-want, +got):\n%s", d)
	}
}

func TestBlocksThatAreWrong(t *testing.T) {
	cases := map[string]struct {
		reason, block string
		wrong         bool
	}{
		"no language":       {"no test would run the command", "```\nkubectl get pods\n```\n", true},
		"prompt":            {"a session belongs to a file that a test plays", "```\n$ kubectl get pods\n```\n", true},
		"variable":          {"a command can begin with a variable", "```\nA=b go test ./...\n```\n", true},
		"bash":              {"one language is enough", "```bash\ngo test\n```\n", true},
		"mark in a line":    {"only a whole block can be left out", "```sh\na\n# Needs b.\nc\n```\n", true},
		"log":               {"the output of a program has no commands", "```\nOperator started\n```\n", false},
		"quote":             {"a test plays the session", "<!-- a.txt -->\n```\n$ kubectl get pods\n```\n", false},
		"commands":          {"a test runs them", "```sh\nkubectl get pods\n```\n", false},
		"marked":            {"the reader knows the reason", "```sh\n# Needs b.\nkubectl logs a\n```\n", false},
		"text of a drawing": {"the author says so", "```text\nkubectl -> API server\n```\n", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, block := range documents.Blocks(tc.block) {
				if err := block.Check(); (err != nil) != tc.wrong {
					t.Errorf("%s: got %v", tc.reason, err)
				}
			}
		})
	}
}

// pages returns the README and the pages of docs.
func pages(t *testing.T) (names []string) {
	t.Helper()
	found, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(found) < 60 {
		t.Fatalf("found %d pages: %v", len(found), err)
	}
	for _, page := range found {
		names = append(names, "docs/"+filepath.Base(page))
	}
	return append(names, "README.md")
}

// TestCommands checks that all commands of pages stand in blocks of commands. Such blocks are run by test/quickstart,
// or begin with a line that names their needs.
func TestCommands(t *testing.T) {
	for _, page := range pages(t) {
		for _, block := range documents.Blocks(read(t, page)) {
			if err := block.Check(); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// isRun reports whether a test runs or compiles a quoted file.
func isRun(file string) bool {
	folder := path.Dir(file)
	exists := func(pattern string) bool {
		found, err := filepath.Glob(path.Join(root, folder, pattern))
		return err == nil && len(found) > 0
	}
	inFolder := func(folder string) bool { return strings.HasPrefix(file, folder) }
	return strings.HasSuffix(file, "_test.go") || exists("session_test.go") || exists("expected.txt") ||
		inFolder("config/") || inFolder("examples/kubebuilder/") || inFolder("examples/getting-started/deploy/") ||
		inFolder("examples/tasks/api/") || // the types of the programs beside it
		!inFolder("examples/") && exists("*_test.go") // a part of the framework
}

// TestFirstFiles checks that a test runs the first file that a page quotes.
func TestFirstFiles(t *testing.T) {
	for _, page := range pages(t) {
		if quotes := documents.Quotes(read(t, page)); len(quotes) > 0 && !isRun(quotes[0].File) {
			t.Errorf("%s: no test runs %s", page, quotes[0].File)
		}
	}
}

// TestGeneratorVersion compares the version of controller-gen in the page with that which wrote the CRD.
func TestGeneratorVersion(t *testing.T) {
	found := regexp.MustCompile(`controller-gen@(v\S+)`).FindStringSubmatch(read(t, "docs/getting-started.md"))
	if found == nil {
		t.Fatal("docs/getting-started.md does not install controller-gen")
	}
	const annotation = "controller-gen.kubebuilder.io/version: "
	if !slices.Contains(strings.Split(read(t, "examples/getting-started/crd.yaml"), "\n"), "    "+annotation+found[1]) {
		t.Errorf("examples/getting-started/crd.yaml was not written by controller-gen %s", found[1])
	}
}
