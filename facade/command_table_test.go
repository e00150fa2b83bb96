package kopf_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// flagRow is a row of the table of flags in docs/command-line.md.
type flagRow struct{ letter, commands, variable, setting string }

// flagsTable returns the page and the rows of that table by the names of the flags.
func flagsTable(t *testing.T) (text string, rows map[string]flagRow) {
	t.Helper()
	data, err := os.ReadFile("../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]flagRow{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 8 || !strings.HasPrefix(cells[1], " `--") {
			continue
		}
		for i, cell := range cells {
			cells[i] = strings.Trim(cell, " `")
		}
		rows[strings.TrimPrefix(cells[1], "--")] = flagRow{
			strings.TrimPrefix(cells[2], "-"), cells[3], cells[4], cells[5],
		}
	}
	return string(data), rows
}

// variablePattern matches the environment variable in the help of a flag.
var variablePattern = regexp.MustCompile(`\[\$KOPF_[A-Z_]+\]`)

// commandPattern matches the name in a row of the table of commands.
var commandPattern = regexp.MustCompile("(?m)^\\| `([a-z-]+)")

// TestCommandsTable shows that the documented table of commands is complete and has no other commands.
func TestCommandsTable(t *testing.T) {
	root := kopf.New("test.example.org").Command()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	names := []string{"run"} // also the root
	for _, cmd := range root.Commands() {
		names = append(names, cmd.Name())
	}
	text, _ := flagsTable(t)
	_, table, _ := strings.Cut(text, "| Command | Effect |")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for _, found := range commandPattern.FindAllStringSubmatch(table, -1) {
		documented = append(documented, found[1])
	}
	slices.Sort(names)
	slices.Sort(documented)
	if d := cmp.Diff(slices.Compact(names), documented); d != "" {
		t.Errorf("the table of commands is complete (-commands, +docs/command-line.md):\n%s", d)
	}
}

// TestFlagsTable shows that the documented table of flags is complete, has no other flags, and has the right
// letters and variables.
func TestFlagsTable(t *testing.T) {
	_, rows := flagsTable(t)
	commands := map[string][]string{}
	compare := func(cmd *cobra.Command, name string) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden || flag.Name == "help" || flag.Name == "version" {
				return
			}
			row, known := rows[flag.Name]
			if !known {
				t.Errorf("docs/command-line.md does not have --%s of %s", flag.Name, name)
				return
			}
			if !slices.Contains(commands[flag.Name], name) {
				commands[flag.Name] = append(commands[flag.Name], name)
			}
			want := ""
			if row.variable != "" {
				want = fmt.Sprintf("[$KOPF_%s_%s]", strings.ToUpper(strings.ReplaceAll(name, "-", "_")), row.variable)
			}
			if got := variablePattern.FindString(flag.Usage); want != got {
				t.Errorf("the variable of --%s of %s is %v, not %v", flag.Name, name, got, want)
			}
			if row.letter != flag.Shorthand {
				t.Errorf("the letter of --%s of %s is %q, not %q", flag.Name, name, flag.Shorthand, row.letter)
			}
		})
	}
	root := kopf.New("test.example.org").Command()
	compare(root, "run")
	for _, cmd := range root.Commands() {
		compare(cmd, cmd.Name())
	}
	for name, row := range rows {
		got := commands[name]
		slices.SortFunc(got, func(a, b string) int {
			const order = "explain run freeze resume webhooks retry-object pause-object resume-object"
			return strings.Index(order, a) - strings.Index(order, b)
		})
		if row.commands != strings.Join(got, " ") {
			t.Errorf("--%s is a flag of %v, not of %q", name, got, row.commands)
		}
	}
}

// TestSettingsOfFlags shows that all settings in the table of flags exist.
func TestSettingsOfFlags(t *testing.T) {
	_, rows := flagsTable(t)
	var none kopf.Settings
	fields := fieldsOf(reflect.ValueOf(&none).Elem(), "")
	for name, row := range rows {
		if _, known := fields[row.setting]; row.setting != "" && !known {
			t.Errorf("kopf.Settings has no %s, which docs/command-line.md names for --%s", row.setting, name)
		}
	}
}
