package documents_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

var update = flag.Bool("update", false, "rewrite the table of log messages from the sources")

const (
	root     = "../.."
	messages = root + "/docs/log-messages.md"
)

func TestLogMessages(t *testing.T) {
	all, err := documents.Messages(
		os.DirFS(root), "facade", "internal", "peering", "reconcilers", "storage", "webhooks",
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d log lines were found: the comparison would pass for nothing", len(all))
	}
	written, err := os.ReadFile(messages)
	if err != nil {
		t.Fatal(err)
	}
	before, table, found := strings.Cut(string(written), "| Level |")
	if !found {
		t.Fatalf("%s has no table", messages)
	}
	want := documents.Table(all)
	if *update {
		if err := os.WriteFile(messages, []byte(before+want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff("| Level |"+table, want); d != "" {
		t.Errorf("the table of log messages is not as the sources are; go test ./test/documents -update writes "+
			"it again "+
			"(-table, +sources):\n%s", d)
	}
}

func TestMessages(t *testing.T) {
	cases := map[string]struct {
		reason, source string
		want           []documents.Message
		err            string
	}{
		"variable message": {"a message that is not constant is an error", `log.Info(what)`, nil, "not a constant"},
		"no logger":        {"a test reports by the same names", `t.Error(err, "x")`, nil, ""},
		"info": {"keys are every second one", `log.Info("Doing", "b", 1, "a", 2)`,
			[]documents.Message{{Level: "info", Text: "Doing", Keys: []string{"a", "b"}, Package: "p"}}, ""},
		"debug": {"it is shown to those who ask for it", `logf.FromContext(ctx).V(1).Info("Doing" + " so")`,
			[]documents.Message{{Level: "debug", Text: "Doing so", Package: "p"}}, ""},
		"error": {"a panic has a stack", `s.log.Error(err, "Failed", append(panics.StackFields(err), "a", 1)...)`,
			[]documents.Message{{Level: "error", Text: "Failed", Keys: []string{"a", "stack"}, Package: "p"}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			source := "package p\n\nfunc f() {\n" + c.source + "\n}\n"
			got, err := documents.Messages(fstest.MapFS{"p/f.go": {Data: []byte(source)}}, "p")
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil {
				t.Fatalf("%s: want %q, got %v", c.reason, c.err, err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want, +got):\n%s", c.reason, d)
			}
		})
	}
}

func TestQuestions(t *testing.T) {
	text, err := os.ReadFile(root + "/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	answers := documents.Answers(string(text))
	if len(answers) < 20 {
		t.Errorf("CONTRIBUTING.md answers %d questions, and should answer 20", len(answers))
	}
	for _, answer := range answers {
		if err := answer.Check(os.DirFS(root)); err != nil {
			t.Error(err)
		}
	}
}

func TestAnswersThatAreWrong(t *testing.T) {
	sources := fstest.MapFS{
		"p/f.go": {Data: []byte("package p\n\nfunc F() {}\n\ntype T struct{}\n\nfunc (*T) M() {}\n")},
	}
	text := "| Question | Package | Function |\n|--|--|--|\n" +
		"| Where is it? | `p` | `F` |\n| Where is that? | `p` | `T.M` |\n| Where is what? | `p` | `T` |\n" +
		"| Where was it? | `p` | `G` |\n| Where is nothing? | `q` | `F` |\n"
	var wrong []string
	for _, answer := range documents.Answers(text) {
		if answer.Check(sources) != nil {
			wrong = append(wrong, answer.Question)
		}
	}
	if d := cmp.Diff([]string{"Where was it?", "Where is nothing?"}, wrong); d != "" {
		t.Errorf("answers that must be found wrong (-want, +got):\n%s", d)
	}
}
