package kopf_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// above is the number of the line before the one where it is called.
func above() int {
	_, _, line, _ := runtime.Caller(1)
	return line - 1
}

// sealed has the methods of an option, but is none.
type sealed struct{ kopf.Option }

func TestMistakes(t *testing.T) {
	raw := func(context.Context, *Raw) error { return nil }
	var nothing kopf.Selection[*Widget]
	var nobody *kopf.Operator
	cases := map[string]struct {
		reason   string
		register func(op *kopf.Operator, w kopf.Selection[*Widget]) int
		want     []string
	}{
		"nil function": {"it would panic at the first object",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("fn", nil)
				return above()
			},
			[]string{`OnCreate("fn"): the function is nil`}},
		"empty id": {"nothing could be kept under it",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnUpdate("", succeed)
				return above()
			},
			[]string{`OnUpdate(""): invalid handler id ""`}},
		"id that is no annotation": {"the record could not be written",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnDelete("a b", succeed)
				return above()
			},
			[]string{`OnDelete("a b"): invalid handler id "a b"`}},
		"id of the framework": {"the record would replace the diff-base",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnResume("last-handled-configuration", succeed)
				return above()
			},
			[]string{`OnResume("last-handled-configuration"): invalid handler id`, "the framework's own"}},
		"several at once": {"one run of the program must show all of them",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("", nil, kopf.Retries(0))
				return above()
			},
			[]string{"3 mistakes", "is empty", "the function is nil", "Retries(0)"}},
		"same verb, same id": {"both would share one record, and one of them would never be called",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed)
				w.OnCreate("a", func(context.Context, *Change) error { return nil })
				return above()
			},
			[]string{`OnCreate("a"): the id is taken by OnCreate at facade/registration_test.go:`}},
		"same id by another name of the kind": {"a type and its resource are one kind",
			func(op *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed)
				kopf.ForResource(op, "example.org/v1", "widgets").OnCreate("a", raw)
				return above()
			},
			[]string{`OnCreate("a"): the id is taken by OnCreate at`}},
		"another version of the kind": {"the objects are the same, and would be handled twice",
			func(op *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed)
				kopf.ForResource(op, "example.org/v1beta1", "widgets").OnCreate("b", raw)
				return above()
			},
			[]string{`OnCreate("b"): the kind is selected as example.org/v1beta1 widgets here`, "choose one version"}},
		"On takes the ids of its verbs": {"it is several registrations in one",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnResume("a", func(context.Context, *Change) error { return nil })
				w.On("a", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonResume}, succeed)
				return above()
			},
			[]string{`OnResume("a"): the id is taken by OnResume at`}},
		"ids with one annotation": {"a slash is a dot in annotations",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a/b", succeed)
				w.OnUpdate("a.b", succeed)
				return above()
			},
			[]string{`OnUpdate("a.b"): the id has the same annotation as "a/b" of OnCreate at`}},
		"bad label selector": {"it would select nothing, or everything",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.MatchingLabels("a in (b")
				return above()
			},
			[]string{`MatchingLabels("a in (b"): invalid selector`}},
		"bad annotation selector": {"the same, on the part of a selection for changes",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.MatchingAnnotations("==")
				return above()
			},
			[]string{`MatchingAnnotations("=="): invalid selector`}},
		"nil filters": {"they would panic at the first object",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.When(nil).OnCreate("a", succeed, kopf.WhenChange[*Widget](nil))
				return above()
			},
			[]string{"When: the function is nil", "WhenChange: the function is nil"}},
		"no reasons": {"the handler would never be called",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", nil, succeed)
				return above()
			},
			[]string{`On("a"): no reasons are given`}},
		"strange reasons": {"no handlers are called for them; or it is a slip",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", []kopf.Reason{"noop", "create", "create"}, succeed)
				return above()
			},
			[]string{`no handlers for the reason "noop"`, `"create" is given twice`}},
		"reason of another verb": {"it needs a field; the options are right",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", []kopf.Reason{"field"}, succeed, kopf.Retries(2))
				return above()
			},
			[]string{`registration_test.go:`, `: On("a"): there are no handlers for the reason "field"`}},
		"wrong values of options": {"each names the option and what it got",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				bad := []kopf.Option{kopf.Retries(-1), kopf.Timeout(0), kopf.Backoff(-time.Second)}
				w.OnCreate("a", succeed, kopf.JoinOptions(append(bad, kopf.Errors(9))...))
				return above()
			},
			[]string{"4 mistakes", "Retries(-1)", "Timeout(0s)", "Backoff(-1s)", "Errors(9)"}},
		"option twice": {"nobody can tell which one was meant",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.Retries(1), kopf.Retries(2))
				return above()
			},
			[]string{`OnCreate("a"): Retries is given twice`}},
		"nil option": {"it is an option by its type only",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, nil)
				return above()
			},
			[]string{"<nil> is not an option of package kopf"}},
		"foreign option": {"embedding an interface breaks its seal",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(sealed{kopf.Retries(1)}))
				return above()
			},
			[]string{"kopf_test.sealed is not an option of package kopf"}},
		"foreign policy": {"the same in a bundle",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(sealed{}, nil))
				return above()
			},
			[]string{"kopf_test.sealed is not an option of package kopf", "<nil> is not an option of package kopf"}},
		"option of another verb in a policy": {"the compiler cannot see it",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(kopf.Retries(1), kopf.JoinOptions(kopf.Optional())))
				return above()
			},
			[]string{`OnCreate("a"): Optional is not an option of this verb`}},
		"option of another verb in On": {"it would have no effect at all",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", kopf.CreateUpdateResume(), succeed, kopf.EvenIfDeleted(), kopf.Optional())
				return above()
			},
			[]string{`On("a"): Optional is not an option of handlers for create, update, resume`}},
		"failure that cannot hold": {"there is no finalizer to hold the object with",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnDelete("a", succeed, kopf.HoldOnFailure(), kopf.Optional())
				return above()
			},
			[]string{`OnDelete("a"): HoldOnFailure needs the finalizer`}},
		"wrong option in a policy": {"the mistake is where the policy is used, as that is where it matters",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(kopf.Retries(0)))
				return above()
			},
			[]string{"Retries(0)"}},
		"selection of nobody": {"the zero value has no operator that could report it",
			func(*kopf.Operator, kopf.Selection[*Widget]) int {
				nothing.OnCreate("a", succeed)
				return above()
			},
			[]string{`OnCreate("a"): the selection is empty`}},
		"nil operator": {"its handlers would be missing silently",
			func(*kopf.Operator, kopf.Selection[*Widget]) int {
				kopf.For(nobody, &Widget{}).OnCreate("a", succeed)
				return above()
			},
			[]string{"kopf.For: the operator is nil or empty"}},
		"nil operator of a resource": {"the same without a type",
			func(*kopf.Operator, kopf.Selection[*Widget]) int {
				kopf.ForResource(nobody, "v1", "pods")
				return above()
			},
			[]string{"kopf.ForResource: the operator is nil or empty"}},
		"nil prototype": {"there is no type to decode into",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.For(op, (*Widget)(nil)).OnCreate("a", succeed)
				return above()
			},
			[]string{"kopf.For: the prototype is nil"}},
		"unstructured prototype without a kind": {"the type does not say which kind",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.For(op, &unstructured.Unstructured{}).OnCreate("a", raw)
				return above()
			},
			[]string{
				"kopf.For(*unstructured.Unstructured): the prototype has no apiVersion and kind",
				"kopf.ForResource(op, ",
			}},
		"no resource": {"nothing is named",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op)
				return above()
			},
			[]string{"kopf.ForResource(): exactly one name"}},
		"too many words": {"four say nothing",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "a", "b", "c", "d")
				return above()
			},
			[]string{`kopf.ForResource("a", "b", "c", "d"): too many arguments`}},
		"one kind in two spellings of one name": {"their progress would be kept under one id",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "kopfexamples").OnCreate("fn", raw)
				other := func(context.Context, *Raw) error { return nil }
				kopf.ForResource(op, "kopf.dev/v1", "kopfexamples").OnCreate("fn", other)
				return above()
			},
			[]string{"the id is taken by OnCreate"}},
		"resource with its group": {"the group is in the other argument",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "kopf.dev/v1", "kopfexamples.kopf.dev")
				return above()
			},
			[]string{`invalid resource name "kopfexamples.kopf.dev"`}},
		"resource without a group": {"a slash promises one",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "/v1", "pods")
				return above()
			},
			[]string{`there is a slash, but no group`}},
		"resource with too many slashes": {"it is no group and version",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "a/b/c", "pods")
				return above()
			},
			[]string{`invalid group "a/b"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			at := c.register(op, kopf.For(op, &Widget{}))
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil {
				t.Fatalf("no error, but: %s", c.reason)
			}
			for _, want := range append(
				c.want, fmt.Sprintf("facade/registration_test.go:%d: ", at), `operator "test.example.org"`,
			) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s\nwant %q in the error, got: %v", c.reason, want, err)
				}
			}
		})
	}
}

func TestUnknownType(t *testing.T) {
	op := kopf.New("test.example.org")
	w, at := kopf.For(op, &unknown{}), above()+1
	w.OnCreate("a", func(context.Context, *kopf.Change[*unknown]) error { return nil })
	w.OnUpdate("b", func(context.Context, *kopf.Change[*unknown]) error { return nil })
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil {
		t.Fatal("no error, but the scheme does not know the type")
	}
	for _, want := range []string{
		fmt.Sprintf(
			"registration_test.go:%d: kopf.For(*kopf_test.unknown): the manager's scheme does not know the type",
			at,
		),
		"call AddToScheme of package github.com/kopf-runtime/kopf-runtime/facade_test",
		"kopf.Settings{AddToScheme: runtime.SchemeBuilder{kopf_test.AddToScheme}}",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("want %q once, for both handlers, got: %v", want, err)
		}
	}
}

type unknown struct{ Widget }
