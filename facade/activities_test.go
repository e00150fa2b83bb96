package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func start(context.Context, *kopf.Activity) error { return nil }
func clean(context.Context, *kopf.Activity) error { return nil }

// TestMistakesInActivities shows that invalid registrations of activity handlers are errors with file and line.
func TestMistakesInActivities(t *testing.T) {
	cases := map[string]struct {
		reason   string
		register func(op *kopf.Operator) int
		want     []string
	}{
		"nil function": {"a nil startup function is an error",
			func(op *kopf.Operator) int {
				op.OnStartup("fn", nil)
				return callerLineBefore()
			},
			[]string{`OnStartup("fn"): the function is nil`}},
		"empty id": {"an empty handler id is an error",
			func(op *kopf.Operator) int {
				op.OnCleanup("", clean)
				return callerLineBefore()
			},
			[]string{`OnCleanup(""): invalid handler id ""`}},
		"same id": {"two startup handlers with the same id are an error",
			func(op *kopf.Operator) int {
				op.OnStartup("a", start)
				op.OnStartup("a", start)
				return callerLineBefore()
			},
			[]string{`OnStartup("a"): the id is taken at facade/activities_test.go:`}},
		"options": {"invalid options are errors as for other handlers",
			func(op *kopf.Operator) int {
				op.OnStartup("a", start, kopf.Timeout(60), kopf.JoinOptions(kopf.Optional()))
				return callerLineBefore()
			},
			[]string{"Timeout: 60ns: did you mean 60*time.Second?", "Optional is not an option of this verb"}},
		"login": {"a nil login function is an error",
			func(op *kopf.Operator) int {
				op.OnLogin("a", nil)
				return callerLineBefore()
			},
			[]string{`OnLogin("a"): the function is nil`}},
		"nil operator": {"a nil operator is an error",
			func(*kopf.Operator) int {
				(*kopf.Operator)(nil).OnStartup("a", start)
				return callerLineBefore()
			},
			[]string{`OnStartup("a"): the operator is nil or empty`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			line := c.register(op)
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil {
				t.Fatalf("got no error: %s", c.reason)
			}
			for _, want := range append(c.want, "facade/activities_test.go:") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s (line %d)\nwant %q in the error, got: %v", c.reason, line, want, err)
				}
			}
		})
	}
}
