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

// callerLineBefore returns the number of the line before the line of its call.
func callerLineBefore() int {
	_, _, line, _ := runtime.Caller(1)
	return line - 1
}

// sealed has the methods of an option, but is not one.
type sealed struct{ kopf.Option }

// TestMistakes shows that each mistake of a registration is an error of the set-up that names the line of the
// registration.
func TestMistakes(t *testing.T) {
	raw := func(context.Context, *Raw) error { return nil }
	var nothing kopf.Selection[*Widget]
	var nobody *kopf.Operator
	cases := map[string]struct {
		reason   string
		register func(op *kopf.Operator, w kopf.Selection[*Widget]) int
		want     []string
	}{
		"nil function": {"a nil function is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("fn", nil)
				return callerLineBefore()
			},
			[]string{`OnCreate("fn"): the function is nil`}},
		"empty id": {"an empty id is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnUpdate("", succeed)
				return callerLineBefore()
			},
			[]string{`OnUpdate(""): invalid handler id ""`}},
		"id that is no annotation": {"an id that cannot be an annotation is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnDelete("a b", succeed)
				return callerLineBefore()
			},
			[]string{`OnDelete("a b"): invalid handler id "a b"`}},
		"id of the framework": {"the id of the last-handled configuration is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnResume("last-handled-configuration", succeed)
				return callerLineBefore()
			},
			[]string{`OnResume("last-handled-configuration"): invalid handler id`, "the framework's own"}},
		"several at once": {"one run reports all mistakes of a registration",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("", nil, kopf.Retries(0))
				return callerLineBefore()
			},
			[]string{"3 mistakes", "is empty", "the function is nil", "Retries(0)"}},
		"same verb, same id": {"two functions under one id of one verb are an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed)
				w.OnCreate("a", func(context.Context, *Change) error { return nil })
				return callerLineBefore()
			},
			[]string{`OnCreate("a"): the id is taken by OnCreate at facade/registration_test.go:`}},
		"same id by another name of the kind": {"one id for a type and for its resource is an error",
			func(op *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed)
				kopf.ForResource(op, "example.org/v1", "widgets").OnCreate("a", raw)
				return callerLineBefore()
			},
			[]string{`OnCreate("a"): the id is taken by OnCreate at`}},
		"another version of the kind": {"two versions of one kind are an error",
			func(op *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed)
				kopf.ForResource(op, "example.org/v1beta1", "widgets").OnCreate("b", raw)
				return callerLineBefore()
			},
			[]string{`OnCreate("b"): the kind is selected as example.org/v1beta1 widgets here`, "choose one version"}},
		"On takes the ids of its verbs": {"an id of On is an error if one of its verbs already has it",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnResume("a", func(context.Context, *Change) error { return nil })
				w.On("a", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonResume}, succeed)
				return callerLineBefore()
			},
			[]string{`OnResume("a"): the id is taken by OnResume at`}},
		"ids with one annotation": {"two ids with the same annotation are an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a/b", succeed)
				w.OnUpdate("a.b", succeed)
				return callerLineBefore()
			},
			[]string{`OnUpdate("a.b"): the id has the same annotation as "a/b" of OnCreate at`}},
		"bad label selector": {"an invalid label selector is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.MatchingLabels("a in (b")
				return callerLineBefore()
			},
			[]string{`MatchingLabels("a in (b"): invalid selector`}},
		"bad annotation selector": {"an invalid annotation selector is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.MatchingAnnotations("==")
				return callerLineBefore()
			},
			[]string{`MatchingAnnotations("=="): invalid selector`}},
		"nil filters": {"nil filters are errors",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.When(nil).OnCreate("a", succeed, kopf.WhenChange[*Widget](nil))
				return callerLineBefore()
			},
			[]string{"When: the function is nil", "WhenChange: the function is nil"}},
		"no reasons": {"On without reasons is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", nil, succeed)
				return callerLineBefore()
			},
			[]string{`On("a"): no reasons are given`}},
		"strange reasons": {"an unknown reason and a repeated one are errors",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", []kopf.Reason{"noop", "create", "create"}, succeed)
				return callerLineBefore()
			},
			[]string{`no handlers for the reason "noop"`, `"create" is given twice`}},
		"reason of another verb": {"a reason that needs a field is an error, and the valid option is not",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", []kopf.Reason{"field"}, succeed, kopf.Retries(2))
				return callerLineBefore()
			},
			[]string{`registration_test.go:`, `: On("a"): there are no handlers for the reason "field"`}},
		"wrong values of options": {"each wrong value is an error with the name of its option",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				bad := []kopf.Option{kopf.Retries(-1), kopf.Timeout(0), kopf.Backoff(-time.Second)}
				w.OnCreate("a", succeed, kopf.JoinOptions(append(bad, kopf.Errors(9))...))
				return callerLineBefore()
			},
			[]string{"4 mistakes", "Retries(-1)", "Timeout(0s)", "Backoff(-1s)", "Errors(9)"}},
		"option twice": {"an option that is given twice is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.Retries(1), kopf.Retries(2))
				return callerLineBefore()
			},
			[]string{`OnCreate("a"): Retries is given twice`}},
		"nil option": {"a nil option is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, nil)
				return callerLineBefore()
			},
			[]string{"<nil> is not an option of package kopf"}},
		"foreign option": {"a foreign type that embeds an option is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(sealed{kopf.Retries(1)}))
				return callerLineBefore()
			},
			[]string{"kopf_test.sealed is not an option of package kopf"}},
		"foreign policy": {"a foreign type and nil in JoinOptions are errors",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(sealed{}, nil))
				return callerLineBefore()
			},
			[]string{"kopf_test.sealed is not an option of package kopf", "<nil> is not an option of package kopf"}},
		"option of another verb in a policy": {"an option of another verb in JoinOptions is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(kopf.Retries(1), kopf.JoinOptions(kopf.Optional())))
				return callerLineBefore()
			},
			[]string{`OnCreate("a"): Optional is not an option of this verb`}},
		"option of another verb in On": {"an option of another verb is an error of On",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.On("a", kopf.CreateUpdateResume(), succeed, kopf.EvenIfDeleted(), kopf.Optional())
				return callerLineBefore()
			},
			[]string{`On("a"): Optional is not an option of handlers for create, update, resume`}},
		"failure that cannot hold": {"HoldOnFailure without a finalizer is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnDelete("a", succeed, kopf.HoldOnFailure(), kopf.Optional())
				return callerLineBefore()
			},
			[]string{`OnDelete("a"): HoldOnFailure needs the finalizer`}},
		"wrong option in a policy": {"a wrong option in JoinOptions is an error of the registration that uses it",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) int {
				w.OnCreate("a", succeed, kopf.JoinOptions(kopf.Retries(0)))
				return callerLineBefore()
			},
			[]string{"Retries(0)"}},
		"zero selection": {"a registration with the zero Selection is an error",
			func(*kopf.Operator, kopf.Selection[*Widget]) int {
				nothing.OnCreate("a", succeed)
				return callerLineBefore()
			},
			[]string{`OnCreate("a"): the selection is empty`}},
		"nil operator": {"a nil operator is an error of For",
			func(*kopf.Operator, kopf.Selection[*Widget]) int {
				kopf.For(nobody, &Widget{}).OnCreate("a", succeed)
				return callerLineBefore()
			},
			[]string{"kopf.For: the operator is nil or empty"}},
		"nil operator of a resource": {"a nil operator is an error of ForResource",
			func(*kopf.Operator, kopf.Selection[*Widget]) int {
				kopf.ForResource(nobody, "v1", "pods")
				return callerLineBefore()
			},
			[]string{"kopf.ForResource: the operator is nil or empty"}},
		"nil prototype": {"a nil prototype is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.For(op, (*Widget)(nil)).OnCreate("a", succeed)
				return callerLineBefore()
			},
			[]string{"kopf.For: the prototype is nil"}},
		"unstructured prototype without a kind": {"an unstructured prototype without a kind is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.For(op, &unstructured.Unstructured{}).OnCreate("a", raw)
				return callerLineBefore()
			},
			[]string{
				"kopf.For(*unstructured.Unstructured): the prototype has no apiVersion and kind",
				"kopf.ForResource(op, ",
			}},
		"no resource": {"ForResource without a name is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op)
				return callerLineBefore()
			},
			[]string{"kopf.ForResource(): exactly one name"}},
		"too many words": {"ForResource with four arguments is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "a", "b", "c", "d")
				return callerLineBefore()
			},
			[]string{`kopf.ForResource("a", "b", "c", "d"): too many arguments`}},
		"one kind in two spellings of one name": {"one id for two spellings of a kind is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "kopfexamples").OnCreate("fn", raw)
				other := func(context.Context, *Raw) error { return nil }
				kopf.ForResource(op, "kopf.dev/v1", "kopfexamples").OnCreate("fn", other)
				return callerLineBefore()
			},
			[]string{"the id is taken by OnCreate"}},
		"resource with its group": {"a group in the name, beside the group argument, is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "kopf.dev/v1", "kopfexamples.kopf.dev")
				return callerLineBefore()
			},
			[]string{`invalid resource name "kopfexamples.kopf.dev"`}},
		"resource without a group": {"a slash without a group is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "/v1", "pods")
				return callerLineBefore()
			},
			[]string{`there is a slash, but no group`}},
		"resource with too many slashes": {"a group version with two slashes is an error",
			func(op *kopf.Operator, _ kopf.Selection[*Widget]) int {
				kopf.ForResource(op, "a/b/c", "pods")
				return callerLineBefore()
			},
			[]string{`invalid group "a/b"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			at := c.register(op, kopf.For(op, &Widget{}))
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil {
				t.Fatalf("want an error: %s", c.reason)
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

// TestUnknownType shows that a Go type that the scheme does not have is reported once, with the solution.
func TestUnknownType(t *testing.T) {
	op := kopf.New("test.example.org")
	w, at := kopf.For(op, &unknown{}), callerLineBefore()+1
	w.OnCreate("a", func(context.Context, *kopf.Change[*unknown]) error { return nil })
	w.OnUpdate("b", func(context.Context, *kopf.Change[*unknown]) error { return nil })
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil {
		t.Fatal("a type that the scheme does not have must be an error")
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
