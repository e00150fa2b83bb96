package documents_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// recordedKopf is what genuine Kopf says about its names: classes and functions with their parameters, enumerations,
// and the arguments of handlers.
type recordedKopf struct {
	Cases []struct {
		Input    struct{ Module, Name, Enum, On string }
		Expected struct {
			Names, Kwargs, Members []string
			Params                 []struct{ Name string }
		}
	}
}

func readRecorded(t *testing.T, family string) (all recordedKopf) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors/" + family + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// recordedNames returns the keys of all names, and the names of the decorators.
func recordedNames(t *testing.T) (keys map[string]bool, decorators []string) {
	t.Helper()
	keys = map[string]bool{}
	for _, one := range readRecorded(t, "public_api").Cases {
		for _, name := range one.Expected.Names {
			keys[one.Input.Module+"."+name] = true
		}
		for _, name := range one.Expected.Members {
			keys[one.Input.Module+"."+one.Input.Enum+"."+name] = true
		}
		for _, param := range one.Expected.Params {
			keys[one.Input.Module+"."+one.Input.Name+"("+param.Name+"=)"] = true
		}
		if one.Input.Module == "kopf.on" && one.Input.Name != "" {
			decorators = append(decorators, one.Input.Name)
		}
	}
	for _, one := range readRecorded(t, "kwargs").Cases {
		for _, name := range one.Expected.Kwargs {
			keys[one.Input.On+"("+name+")"] = true
		}
	}
	if len(keys) < 700 || len(decorators) < 17 {
		t.Fatalf("found %d names and %d decorators: the test would pass for nothing", len(keys), len(decorators))
	}
	return keys, decorators
}

// variables are those of docs/kopf-names.md.
const variables = `
var (
	op          *kopf.Operator
	s           kopf.Selection[*kopf.Unstructured]
	c           *kopf.Change[*kopf.Unstructured]
	e           *kopf.WatchEvent[*kopf.Unstructured]
	r           *kopf.Task[*kopf.Unstructured]
	memo        *kopf.Memo[int]
	object      *kopf.Unstructured
	Settings    kopf.Settings
	RunSettings kopf.RunSettings
)
`

// goForms checks the Go forms of a document.
type goForms struct {
	handlers, activities *documents.Resolver // they differ in the type of a
	flags                map[string]bool
}

// compileGoForms compiles the packages once for all tests.
var compileGoForms = sync.OnceValues(func() (forms goForms, err error) {
	compiler, err := documents.NewCompiler(root, append(slices.Clone(snippetImports),
		`autoscalingv1 "k8s.io/api/autoscaling/v1"`, `"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"`)...)
	if err != nil {
		return forms, err
	}
	forms.handlers, err = compiler.Resolver(variables + "var a *kopf.Admission[*kopf.Unstructured]\n")
	if err != nil {
		return forms, err
	}
	forms.activities, err = compiler.Resolver(variables + "var a *kopf.Activity\n")
	return forms, err
})

func newGoForms(t *testing.T) goForms {
	t.Helper()
	forms, err := compileGoForms()
	if err != nil {
		t.Fatal(err)
	}
	forms.flags = map[string]bool{}
	for _, found := range flagRow.FindAllStringSubmatch(read(t, "docs/command-line.md"), -1) {
		forms.flags[found[1]] = true
	}
	return forms
}

// flagRow matches a row of the table of flags, which a test of package kopf compares with the commands.
var flagRow = regexp.MustCompile("(?m)^\\| `(--[a-z-]+)` \\|")

// problem describes the mistake in a Go form. It is empty if the form has a name that exists, or a reason.
func (g goForms) problem(one documents.KopfName) string {
	resolver, found := g.handlers, 0
	if one.Activity {
		resolver = g.activities
	}
	for _, span := range documents.Spans(one.Go) {
		flag, _, _ := strings.Cut(span, "=")
		switch {
		case strings.HasPrefix(span, "--") && !g.flags[flag]:
			return "there is no flag " + flag
		case strings.HasPrefix(span, "--"), strings.HasPrefix(span, "$"), span == "object":
			found++
		default:
			names, err := resolver.Check(span)
			if err != nil {
				return span + ": " + err.Error()
			}
			if names == 0 {
				return span + " has no name that can be checked: write it with its package or its variable"
			}
			found += names
		}
	}
	reason, none := strings.CutPrefix(one.Go, "none: ")
	if none && reason == "" || !none && found == 0 {
		return "it has neither a Go name nor a reason after \"none: \""
	}
	return ""
}

// TestKopfNames checks that docs/kopf-names.md has the Go form, or the reason, of every public name of Kopf and of
// every parameter and argument, once, and that it has no others.
func TestKopfNames(t *testing.T) {
	want, decorators := recordedNames(t)
	names, err := documents.KopfNames(read(t, "docs/kopf-names.md"), decorators)
	if err != nil {
		t.Fatal(err)
	}
	forms, got, checked := newGoForms(t), map[string]bool{}, map[documents.KopfName]bool{}
	for _, one := range names {
		switch {
		case !want[one.Key]:
			t.Errorf("docs/kopf-names.md has %s, which Kopf does not have", one.Key)
		case got[one.Key]:
			t.Errorf("docs/kopf-names.md has %s twice", one.Key)
		}
		got[one.Key] = true
		form := documents.KopfName{Go: one.Go, Activity: one.Activity}
		if checked[form] {
			continue
		}
		checked[form] = true
		if problem := forms.problem(one); problem != "" {
			t.Errorf("docs/kopf-names.md, %s: %s", one.Key, problem)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !got[key] {
			t.Errorf("docs/kopf-names.md does not have %s", key)
		}
	}
}

// verbOf returns the Go verb of a decorator.
func verbOf(decorator string) string {
	switch decorator {
	case "daemon", "timer", "validate", "mutate":
		return strings.ToUpper(decorator[:1]) + decorator[1:]
	case "index":
		return "NewIndex"
	case "register", "subhandler":
		return "Sub"
	}
	return "On" + strings.ToUpper(decorator[:1]) + decorator[1:]
}

// TestOptionsOfDecorators checks that the verb of a decorator accepts the option that docs/kopf-names.md has for each
// of its parameters. The table in docs/options.md is that of the sources.
func TestOptionsOfDecorators(t *testing.T) {
	accepted := map[string][]string{}
	for _, grid := range documents.Grids(read(t, "docs/options.md")) {
		for _, row := range grid.Rows {
			accepted["kopf."+strings.Trim(row[0], "`")] = strings.Split(row[2], ", ")
		}
	}
	_, decorators := recordedNames(t)
	names, err := documents.KopfNames(read(t, "docs/kopf-names.md"), decorators)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, one := range names {
		decorator, isParam := strings.CutPrefix(one.Key, "kopf.on.")
		spans := documents.Spans(one.Go)
		if !isParam || len(spans) == 0 || !strings.Contains(decorator, "(") {
			continue
		}
		option, _, _ := strings.Cut(spans[0], "(")
		decorator, _, _ = strings.Cut(decorator, "(")
		if verbs, isOption := accepted[option]; isOption {
			checked++
			if !slices.Contains(verbs, verbOf(decorator)) {
				t.Errorf("docs/kopf-names.md: %s is %s, which %s does not accept", one.Key, option, verbOf(decorator))
			}
		}
	}
	if checked < 100 {
		t.Errorf("compared %d parameters with options: the test would pass for nothing", checked)
	}
}

func TestKopfNamesInTables(t *testing.T) {
	const document = "| Kopf | Go |\n|--|--|\n| `@kopf.on.create`, `kopf.run` | x |\n\n" +
		"| Parameter | Decorators | Go |\n|--|--|--|\n| `id=` | all except `event` | x |\n\n" +
		"| Parameter | Of | Go |\n|--|--|--|\n| `owner=` | `kopf.adopt` | x \\| y |\n\n" +
		"| Kopf | `create`, `update` | `login` |\n|--|--|--|\n| `old` | c | – |\n| `retry` | – | a |\n"
	got, err := documents.KopfNames(document, []string{"create", "event"})
	if err != nil {
		t.Fatal(err)
	}
	want := []documents.KopfName{
		{Key: "kopf.on.create", Go: "x"}, {Key: "kopf.run", Go: "x"}, {Key: "kopf.on.create(id=)", Go: "x"},
		{Key: "kopf.adopt(owner=)", Go: "x | y"}, {Key: "create(old)", Go: "c"}, {Key: "update(old)", Go: "c"},
		{Key: "login(retry)", Go: "a", Activity: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the names of each kind of table (-want, +got):\n%s", d)
	}
	for _, row := range []string{"| `kopf.run` |", "| kopf.run | x |"} {
		if _, err := documents.KopfNames("| Kopf | Go |\n|--|--|\n"+row+"\n", nil); err == nil {
			t.Errorf("%s is accepted: a row without a cell or a name hides names", row)
		}
	}
}

func TestGoFormsThatAreWrong(t *testing.T) {
	forms := newGoForms(t)
	cases := map[string]struct{ reason, form, problem string }{
		"function":         {"it exists", "`kopf.Retries(5)`", ""},
		"generic function": {"it exists, without its type", "`kopf.NewMemo`", ""},
		"generic type":     {"it exists", "`kopf.Index[K, V]`", ""},
		"method":           {"the variable has a type", "`c.Patch(func(o T) { … })`", ""},
		"field of a type":  {"a class has fields", "`kopf.ConnectionInfo.Server`", ""},
		"setting":          {"a setting has a path", "`Settings.Peering.Name`", ""},
		"flag":             {"the command line has it", "`--log-format=json`", ""},
		"reason":           {"Go has no event loop", "none: Go has no event loop", ""},
		"renamed":          {"the function was renamed", "`kopf.Retry(5)`", "undefined"},
		"renamed field":    {"the field was renamed", "`Settings.Peering.Title`", "undefined"},
		"argument":         {"arguments can have names, too", "`kopf.Errors(kopf.ErrorsNone)`", "undefined"},
		"unknown flag":     {"the flag was renamed", "`--log-shape`", "no flag"},
		"no name":          {"a reader cannot look it up", "something else", "neither"},
		"bare name":        {"it cannot be checked", "`Retries`", "no name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := forms.problem(documents.KopfName{Go: tc.form})
			if tc.problem == "" && got != "" || !strings.Contains(got, tc.problem) {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.problem, got)
			}
		})
	}
}
