package documents_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

func TestOptions(t *testing.T) {
	const page = root + "/docs/options.md"
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, table, _ := strings.Cut(string(written), "| Option |")
	want, err := documents.OptionsTable(os.DirFS(root), "facade")
	if err != nil || strings.Count(want, "\n") < 30 {
		t.Fatalf("the options were not found: %v\n%s", err, want)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff("| Option |"+table, want); d != "" {
		t.Errorf("the table of options differs from the sources; go test ./test/documents -update writes it "+
			"(-table, +sources):\n%s", d)
	}
}

func TestOptionsTable(t *testing.T) {
	sources := fstest.MapFS{"a/a.go": {Data: []byte(`package a

type Option interface{ anyOption() }
type narrow interface{ Option; narrow() }
type other interface{ Option; other() }
type wide interface{ narrow; other }

// Limit limits it. It has more to say.
func Limit() wide { return nil }

// Own is for one verb.
func Own() narrow { return nil }

func verb(opts ...narrow)                 {}
func (s Selection) OnCreate(opts ...narrow) {}
func (s Selection) Timer(opts ...other)     {}
func Words(words ...string)                 {}
`)}}
	got, err := documents.OptionsTable(sources, "a")
	if err != nil {
		t.Fatal(err)
	}
	want := `| Option | Purpose | Accepted by |
|--|--|--|
| ` + "`Limit`" + ` | Limit limits it. | OnCreate, Timer |
| ` + "`Own`" + ` | Own is for one verb. | OnCreate |
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("an option must be listed with all verbs that accept it: -want, +got:\n%s", d)
	}
}
