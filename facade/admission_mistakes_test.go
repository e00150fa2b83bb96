package kopf_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func registerAdmission(context.Context, *Admission) error { return nil }

func admitRaw(context.Context, *RawAdmission) error { return nil }

func admitScale(context.Context, *kopf.Admission[*autoscalingv1.Scale]) error { return nil }

// anyObject is an interface, so it cannot be instantiated.
type anyObject interface{ client.Object }

// TestMistakesOfAdmission shows that invalid registrations of admission handlers are errors with file and line.
func TestMistakesOfAdmission(t *testing.T) {
	tests := map[string]struct {
		reason   string
		register func(op *kopf.Operator, w kopf.Selection[*Widget])
		want     string
	}{
		"nil function": {"a nil function is an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", nil)
		}, `Validate("fn"): the function is nil`},
		"empty id": {"an empty handler id is an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Mutate("", registerAdmission)
		}, `Mutate(""): invalid handler id ""`},
		"no operation": {"an empty list of operations is an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", registerAdmission, kopf.Operations())
		}, `Validate("fn"): Operations: none is given`},
		"any operation": {
			"the operation * is an error because it is the default", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				w.Validate("fn", registerAdmission, kopf.Operations("*"))
			}, `Validate("fn"): Operations("*"): there are CREATE, UPDATE, DELETE, CONNECT`},
		"no subresource": {
			"an empty subresource is an error because it is the default",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				w.Validate("fn", registerAdmission, kopf.Subresource(""))
			}, `Validate("fn"): Subresource(""): it is one name`},
		"deletion and more": {
			"a mutating handler of deletions and other operations is an error",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				w.Mutate("fn", registerAdmission, kopf.Operations("UPDATE", "DELETE"))
			}, `Mutate("fn"): Operations: a mutating handler is asked about deletions only if`},
		"another kind": {
			"a subresource with another kind requires ForSubresource",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				w.Validate("fn", registerAdmission, kopf.Subresource("scale"))
			}, `kopf.ForSubresource[*autoscalingv1.Scale](…, "scale")`},
		"two subresources": {"a second subresource is an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			kopf.ForSubresource[*autoscalingv1.Scale](w, "scale").Validate("fn", admitScale, kopf.Subresource("status"))
		}, `Validate("fn"): Subresource("status"): the selection is of "scale" already`},
		"any subresource": {
			"ForSubresource with * is an error as subresources have different kinds",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				kopf.ForSubresource[*kopf.Unstructured](w, "*").Validate("fn", admitRaw)
			}, `kopf.ForSubresource("*"): it is one name`},
		"no type": {
			"a type that cannot be instantiated is an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				kopf.ForSubresource[anyObject](w, "scale")
			}, `kopf.ForSubresource("scale"): kopf_test.anyObject is not a type of objects`},
		"filtered": {
			"ForSubresource of a filtered selection is an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				kopf.ForSubresource[*kopf.Unstructured](w.MatchingLabels("a"), "scale").Validate("fn", admitRaw)
			}, `kopf.ForSubresource("scale"): the selection has filters`},
		"empty selection": {
			"ForSubresource of an empty selection is an error", func(*kopf.Operator, kopf.Selection[*Widget]) {
				kopf.ForSubresource[*kopf.Unstructured](kopf.Selection[*Widget]{}, "scale").Validate("fn", admitRaw)
			}, `kopf.ForSubresource("scale"): the selection is empty`},
		"field that is none": {
			"an unknown field is an error that suggests a similar one",
			func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				w.Validate("fn", registerAdmission, kopf.InField("spec.sise"))
			}, "did you mean spec.size?"},
		"id twice": {
			"two validating handlers with the same id are an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
				w.Validate("fn", registerAdmission)
				w.Validate("fn", func(context.Context, *kopf.Admission[*Widget]) error { return nil })
			}, `Validate("fn"): the id is taken by Validate at facade/admission_mistakes_test.go:`},
		"policy": {"an option of another verb is an error", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", registerAdmission, kopf.JoinOptions(kopf.Retries(3)))
		}, `Validate("fn"): Retries is not an option of this verb`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			tc.register(op, kopf.For(op, &Widget{}))
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "admission_mistakes_test.go:") {
				t.Errorf("%s: got %v, want %q with its file and line", tc.reason, err, tc.want)
			}
		})
	}
}

// TestIDsOfAdmission shows that two admission handlers with one id conflict only if they share a path: handlers of
// different kinds do so with AsKopf, validating and mutating handlers and change handlers do not.
func TestIDsOfAdmission(t *testing.T) {
	for name, tc := range map[string]struct {
		settings kopf.Settings
		want     bool
	}{"ours": {kopf.Settings{}, true}, "as Kopf": {kopf.AsKopf(), false}} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", tc.settings)
			widgets := kopf.For(op, &Widget{})
			widgets.Validate("fn", registerAdmission)
			widgets.Mutate("fn", registerAdmission)
			widgets.OnCreate("fn", succeed)
			kopf.ForResource(op, "example.org", "v2", "widgets").Validate("other", admitRaw)
			kopf.ForResource(op, "others").Validate("fn", admitRaw)
			_, err := kopf.Plan(op, newScheme(t))
			if fine := err == nil; fine != tc.want {
				t.Errorf("unexpected result of the set-up: got %v", err)
			}
		})
	}
}

// TestLabelsOfAdmission shows that label filters are part of the selector for the API server, except for functions.
func TestLabelsOfAdmission(t *testing.T) {
	odd := func(value string, _ bool) bool { return len(value)%2 == 1 }
	for want, narrow := range map[string]func(w kopf.Selection[*Widget]) kopf.Selection[*Widget]{
		"<nil>": func(w kopf.Selection[*Widget]) kopf.Selection[*Widget] { return w.WithLabel("a", odd) },
		"a,b=c,!d,e in (f,g)": func(w kopf.Selection[*Widget]) kopf.Selection[*Widget] {
			return w.WithLabel("a", kopf.Present).WithLabel("b", "c").WithLabel("d", kopf.Absent).
				MatchingLabels("e in (f,g)").WithAnnotation("h", "i").MatchingAnnotations("j=k")
		},
	} {
		op := kopf.New("test.example.org")
		narrow(kopf.For(op, &Widget{})).Validate("fn", registerAdmission)
		plan := planOf(t, op)
		if d := cmp.Diff(want, fmt.Sprint(plan[0].Handler.Labels)); d != "" {
			t.Errorf("the label filters become the selector: -want, +got:\n%s", d)
		}
	}
}

// TestOptionsOfAdmission shows that the options of an admission handler reach its registration.
func TestOptionsOfAdmission(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	widgets.Validate("plain", registerAdmission)
	widgets.Mutate("all", registerAdmission, kopf.SideEffects(), kopf.IgnoreFailures(), kopf.Persistent(),
		kopf.Subresource("*"))
	plan := planOf(t, op)
	got := []string{}
	for _, one := range plan {
		h := one.Handler
		got = append(got, fmt.Sprint(h.Mutating, h.SideEffects, h.IgnoreFailures, h.Persistent, h.Subresource))
	}
	if d := cmp.Diff([]string{"false false false false", "true true true true*"}, got); d != "" {
		t.Errorf("the options of the handler apply: -want, +got:\n%s", d)
	}
}
