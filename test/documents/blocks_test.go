package documents_test

import (
	"os"
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

// runs returns the test that runs a quoted file, and whether it compares the log.
func runs(file string) (test string, compared bool) {
	folder := path.Dir(file)
	ownTests, err := filepath.Glob(path.Join(root, folder, "*_test.go"))
	exists := func(name string) bool {
		_, err := os.Stat(path.Join(root, folder, name))
		return err == nil
	}
	switch {
	case strings.HasSuffix(file, "_test.go"):
		return file, true
	case exists("session_test.go"):
		return folder + "/session_test.go", true
	case exists("expected.txt"):
		return "test/e2e/examples_test.go", true
	case strings.HasPrefix(file, "examples/kubebuilder/"):
		return "test/e2e/examples_kubebuilder_test.go", false
	case strings.HasPrefix(file, "examples/getting-started/deploy/"):
		return "test/quickstart/follow_test.go", false
	case strings.HasPrefix(file, "examples/tasks/api/"): // the types of the programs beside it
		return "examples/tasks", false
	case !strings.HasPrefix(file, "examples/") && err == nil && len(ownTests) > 0: // a part of the framework
		return folder, false
	}
	return "", false
}

// stock counts the files and commands of pages, and the work of tests with them.
type stock struct {
	quoted   map[string]bool // Go files that pages quote
	programs map[string]bool // first files that a test runs, and whether it compares the log

	snippets, sessions, commands, blocks, markedBlocks, anchors, references int
}

func (s *stock) addPage(t *testing.T, page, text string) {
	t.Helper()
	run, marked := 0, 0
	for _, block := range documents.Blocks(text) {
		switch {
		case block.IsCommands() && block.Needs() != "":
			marked++
		case block.IsCommands():
			s.blocks++
			run += len(block.Commands())
		case path.Base(block.File) == "session.txt":
			s.sessions++
			s.commands += strings.Count("\n"+block.Text, "\n$ ")
		case path.Ext(block.File) == ".go":
			s.quoted[block.File] = true
		}
	}
	s.snippets += len(documents.Snippets(documents.WithoutQuotes(text)))
	s.commands += run
	s.markedBlocks += marked
	t.Logf("%-30s %-60s %2d commands run, %d blocks marked", page, s.addFirst(t, page, text), run, marked)
}

// addFirst adds the first file of a page, and returns its description.
func (s *stock) addFirst(t *testing.T, page, text string) string {
	t.Helper()
	for _, block := range documents.Blocks(text) {
		switch {
		case block.File != "":
			test, compared := runs(block.File)
			if test == "" {
				t.Errorf("%s: no test runs %s", page, block.File)
			}
			s.programs[block.File] = s.programs[block.File] || compared
			return block.File + ": " + test
		case block.Language == "go" && documents.Snippet{Text: block.Text}.IsProgram():
			s.programs[page] = true
			return "a program: test/quickstart"
		case block.Language == "go":
			return "a part, compiled"
		}
	}
	return "no file"
}

// TestStock prints, with -v, what tests do with each page, and the counts. It fails if no test runs the first file of a
// page.
func TestStock(t *testing.T) {
	s := stock{quoted: map[string]bool{}, programs: map[string]bool{}}
	for _, page := range pages(t) {
		s.addPage(t, page, read(t, page))
	}
	sources := os.DirFS(root)
	for _, name := range markdown(t, sources) {
		for _, target := range documents.Links(read(t, name)) {
			if strings.Contains(target, "#") && !strings.Contains(target, "://") {
				s.anchors++
			}
		}
	}
	for name, text := range sourceFiles(t, sources) {
		s.references += len(documents.References(name, text))
	}
	compared := 0
	for _, isCompared := range s.programs {
		if isCompared {
			compared++
		}
	}
	t.Logf("Go: %d files compiled in their folders, %d blocks compiled from pages; first files: %d run by a test, "+
		"%d of them with a comparison of the log", len(s.quoted), s.snippets, len(s.programs), compared)
	t.Logf("commands: %d run, in %d blocks and %d parts of sessions; %d blocks need more than the development cluster",
		s.commands, s.blocks, s.sessions, s.markedBlocks)
	t.Logf("anchors resolved: %d in links of pages, %d references in sources to pages", s.anchors, s.references)
	if s.commands < 100 || s.anchors < 100 || len(s.programs) < 20 {
		t.Error("the test would pass for nothing")
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
