package documents_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadme keeps the README short enough to be read in full.
func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	if lines := strings.Count(text, "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, more than 150: move something to docs", lines)
	}
	if words := len(strings.Fields(documents.Prose(text))); words > 900 || words < 300 {
		t.Errorf("README.md has %d words of prose, not 300 to 900", words)
	}
	for i, block := range regexp.MustCompile("(?ms)^```.*?^```$").FindAllString(text, -1) {
		if lines := strings.Count(block, "\n") - 1; lines >= 25 {
			t.Errorf("block %d of README.md has %d lines, more than 24", i+1, lines)
		}
	}
}

// TestIndex checks that docs/README.md leads to every page.
func TestIndex(t *testing.T) {
	links := documents.Links(read(t, "docs/README.md"))
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("found %d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !slices.Contains(links, name) {
			t.Errorf("docs/README.md does not have a link to %s", name)
		}
	}
}

// goMod is the part of a go.mod that documents repeat.
type goMod struct {
	Go      string
	Require []struct {
		Path, Version string
		Indirect      bool
	}
}

func readGoMod(t *testing.T, name string) (parsed goMod, versions map[string]string) {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(root, name)).Output() //nolint:gosec // ours
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &parsed); err != nil {
		t.Fatal(err)
	}
	versions = map[string]string{}
	for _, one := range parsed.Require {
		versions[one.Path] = strings.TrimPrefix(one.Version, "v")
	}
	return parsed, versions
}

// TestDependencies compares the table of docs/dependencies.md with go.mod.
func TestDependencies(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/dependencies.md"), "\n## Modules\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for _, found := range regexp.MustCompile("`([a-z0-9.]+\\.[a-z]+/[^`]+)`").FindAllStringSubmatch(table, -1) {
		named = append(named, found[1])
	}
	parsed, versions := readGoMod(t, "go.mod")
	for _, one := range parsed.Require {
		if !one.Indirect && !slices.Contains(named, one.Path) {
			t.Errorf("docs/dependencies.md does not have the reason for %s", one.Path)
		}
	}
	for _, name := range named {
		if _, required := versions[name]; !required {
			t.Errorf("docs/dependencies.md has %s, which go.mod does not require", name)
		}
	}
}

// TestCompatibility compares the versions in the README and in docs/compatibility.md with those that are tested.
func TestCompatibility(t *testing.T) {
	lowest, low := readGoMod(t, "go.mod")
	_, high := readGoMod(t, "test/newest/go.mod")
	constant := func(file, pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s does not have %s", file, pattern)
		}
		return found[1]
	}
	const runtime, client = "sigs.k8s.io/controller-runtime", "k8s.io/client-go"
	server := constant("test/controlplane/assets/modules/kubernetes.mod", `require k8s.io/kubernetes v(\S+)`)
	kopf := constant("test/genuine/requirements.txt", `kopf==(\S+)`)
	minor := strings.TrimSuffix(lowest.Go, ".0")
	for page, rows := range map[string][]string{
		"README.md": {
			"| controller-runtime, client-go | " + low[runtime] + ", " + low[client] + " | " +
				high[runtime] + ", " + high[client] + " |",
			"| kube-apiserver | " + server + " | " + server + " |", "`go.mod` requires " + minor,
			"| Kopf | " + kopf + " | " + kopf + " |",
		},
		"docs/compatibility.md": {
			"| controller-runtime | " + low[runtime] + " | " + high[runtime] + " |",
			"| client-go and the other Kubernetes modules | " + low[client] + " | " + high[client] + " |",
			"| kube-apiserver | " + server + " | ", "`go " + lowest.Go + "`", "| Kopf | " + kopf + " | ",
			"| etcd, under this API server | " +
				constant("test/controlplane/assets/modules/etcd.mod", `require \S+/etcd/server/v3 v(\S+)`) + " | ",
		},
	} {
		for _, row := range rows {
			if !strings.Contains(read(t, page), row) {
				t.Errorf("%s does not have %q, which is tested", page, row)
			}
		}
	}
}
