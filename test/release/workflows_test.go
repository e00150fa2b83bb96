package release_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"sigs.k8s.io/yaml"
)

// TestWorkflows lints the workflows. The one for changes must run the same script as everybody else.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the repository must have workflows: %v", err)
	}
	for _, file := range files {
		text := readFile(t, file)
		for _, problem := range lintWorkflow(t, file, text) {
			t.Errorf("%v", problem)
		}
		if !strings.Contains(text, ".ci/run") {
			t.Errorf("%s must call .ci/run, so that there is one list of checks", file)
		}
	}
}

// lintWorkflow returns the problems of a workflow.
func lintWorkflow(t *testing.T, file, text string) []*actionlint.Error {
	t.Helper()
	// Programs for scripts, such as shellcheck, may be installed or not. The result must not depend on that.
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := linter.Lint(file, []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// TestIssueTemplates parses the forms for issues. Each field needs a label, and an id that is unique in its form.
func TestIssueTemplates(t *testing.T) {
	files, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("the repository must have templates: %v", err)
	}
	for _, file := range files {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Labels            []string
			Body              []struct {
				Type, ID    string
				Attributes  struct{ Label, Value, Description, Render string }
				Validations struct{ Required bool }
			}
		}
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), &form); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		seen := map[string]bool{}
		for _, field := range form.Body {
			if field.Type == "markdown" {
				continue
			}
			if field.Attributes.Label == "" || field.ID == "" || seen[field.ID] {
				t.Errorf("%s: the field %q must have a label and an id of its own", file, field.ID)
			}
			seen[field.ID] = true
		}
		if form.Name == "" || form.Description == "" || len(seen) == 0 {
			t.Errorf("%s must have a name, a description and fields", file)
		}
	}
}
