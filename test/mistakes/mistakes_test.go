package mistakes_test

import (
	stdcmp "cmp"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const golden = "../../docs/mistakes.md"

const head = `# Typical mistakes and their messages

This page answers what a message of a mistake means. Each line has a mistake in an operator, and its message. A test
makes each of them and writes this table: go test ./test/mistakes -update. Lines of the first two groups begin with
the setup of the operator, and the file and line of the call; they refer to this page. In the code, deployments are
kopf.For(op, &appsv1.Deployment{}), roll is a handler of changes, poll one in the background.
`

// foot is the end of the page: mistakes that no test can make by a registration alone.
//
//go:embed testdata/buttons.md
var foot string

// TestMistakes makes all of them.
func TestMistakes(t *testing.T) {
	var table strings.Builder
	table.WriteString(head)
	count := 0
	row := func(name, code, message string) {
		count++
		if strings.TrimSpace(message) == "" {
			t.Errorf("%s: nothing is said", name)
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", name, cell(code), cell(message))
	}

	section(&table, "In the registrations: the operator does not start")
	code := sources(t, "registrations_test.go")
	for _, one := range registrations {
		op := kopf.New("demo.example.org")
		one.register(op, kopf.For(op, &deployment{}))
		row(one.name, code[one.name], setUp(t, op))
	}

	section(&table, "In the settings: the operator does not start")
	code = sources(t, "settings_test.go")
	for _, one := range settings {
		op := one.newOperator()
		kopf.For(op, &deployment{}).OnCreate("roll", roll)
		row(one.name, code[one.name], setUp(t, op))
	}

	section(&table, "In a handler: the log reports it")
	code = sources(t, "calls_test.go")
	for _, one := range calls {
		row(one.name, code[one.name], run(t, one.handler))
	}

	section(&table, "On the command line: the program ends, with the exit code 2 or 1")
	for _, one := range commands {
		shown := "operator"
		for _, word := range one.args {
			shown += " " + stdcmp.Or(word, "''")
		}
		row(one.name, shown, execute(t, one.args))
	}

	table.WriteString(foot)
	if count < 40 {
		t.Errorf("there are %d mistakes, and 40 should be shown", count)
	}
	if *update {
		if err := os.WriteFile(golden, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(read(t, golden), table.String()); d != "" {
		t.Errorf("messages differ from %s; if that is meant, go test ./test/mistakes -update rewrites it "+
			"(-golden, +now):\n%s", golden, d)
	}
}

func section(table *strings.Builder, title string) {
	fmt.Fprintf(table, "\n## %s\n\n| Mistake | Example | Message |\n|--|--|--|\n", title)
}

// cell makes lines of code or text one cell of a table.
func cell(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, "`"+strings.ReplaceAll(strings.ReplaceAll(line, "`", "'"), "|", "\\|")+"`")
		}
	}
	return strings.Join(lines, "<br>")
}
