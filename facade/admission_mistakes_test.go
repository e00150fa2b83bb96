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

func admit(context.Context, *Admission) error { return nil }

func admitRaw(context.Context, *RawAdmission) error { return nil }

func admitScale(context.Context, *kopf.Admission[*autoscalingv1.Scale]) error { return nil }

// anyObject is what no object can be made of.
type anyObject interface{ client.Object }

func TestMistakesOfAdmission(t *testing.T) {
	tests := map[string]struct {
		reason   string
		register func(op *kopf.Operator, w kopf.Selection[*Widget])
		want     string
	}{
		"nil function": {"it would panic at the first request", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", nil)
		}, `Validate("fn"): the function is nil`},
		"empty id": {"there would be no path", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Mutate("", admit)
		}, `Mutate(""): invalid handler id ""`},
		"no operation": {"it would never be called", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", admit, kopf.Operations())
		}, `Validate("fn"): Operations: none is given`},
		"any operation": {"that is the default", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", admit, kopf.Operations("*"))
		}, `Validate("fn"): Operations("*"): there are CREATE, UPDATE, DELETE, CONNECT`},
		"no subresource": {"that is the default", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", admit, kopf.Subresource(""))
		}, `Validate("fn"): Subresource(""): it is one name`},
		"deletion and more": {"deletions would not get there", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Mutate("fn", admit, kopf.Operations("UPDATE", "DELETE"))
		}, `Mutate("fn"): Operations: a mutating handler is asked about deletions only if`},
		"another kind": {"a scale is no widget", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", admit, kopf.Subresource("scale"))
		}, `kopf.ForSubresource[*autoscalingv1.Scale](…, "scale")`},
		"two subresources": {"which one is meant", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			kopf.ForSubresource[*autoscalingv1.Scale](w, "scale").Validate("fn", admitScale, kopf.Subresource("status"))
		}, `Validate("fn"): Subresource("status"): the selection is of "scale" already`},
		"any subresource": {"they are of several kinds", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			kopf.ForSubresource[*kopf.Unstructured](w, "*").Validate("fn", admitRaw)
		}, `kopf.ForSubresource("*"): it is one name`},
		"no type": {"nothing could be decoded", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			kopf.ForSubresource[anyObject](w, "scale")
		}, `kopf.ForSubresource("scale"): kopf_test.anyObject is not a type of objects`},
		"filtered": {"filters look at widgets", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			kopf.ForSubresource[*kopf.Unstructured](w.MatchingLabels("a"), "scale").Validate("fn", admitRaw)
		}, `kopf.ForSubresource("scale"): the selection has filters`},
		"empty selection": {"it is of no kind", func(*kopf.Operator, kopf.Selection[*Widget]) {
			kopf.ForSubresource[*kopf.Unstructured](kopf.Selection[*Widget]{}, "scale").Validate("fn", admitRaw)
		}, `kopf.ForSubresource("scale"): the selection is empty`},
		"field that is none": {"the handler would never be called", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", admit, kopf.InField("spec.sise"))
		}, "did you mean spec.size?"},
		"id twice": {"requests could not be told apart", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", admit)
			w.Validate("fn", func(context.Context, *kopf.Admission[*Widget]) error { return nil })
		}, `Validate("fn"): the id is taken by Validate at facade/admission_mistakes_test.go:`},
		"policy": {"options of other verbs do not fit", func(_ *kopf.Operator, w kopf.Selection[*Widget]) {
			w.Validate("fn", admit, kopf.JoinOptions(kopf.Retries(3)))
		}, `Validate("fn"): Retries is not an option of this verb`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			tc.register(op, kopf.For(op, &Widget{}))
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "admission_mistakes_test.go:") {
				t.Errorf("%s: got %v, want %q with its place", tc.reason, err, tc.want)
			}
		})
	}
}

// Ids are taken by handlers that requests could be taken for, and by no others.
func TestIDsOfAdmission(t *testing.T) {
	for name, tc := range map[string]struct {
		settings kopf.Settings
		want     bool
	}{"ours": {kopf.Settings{}, true}, "as Kopf": {kopf.AsKopf(), false}} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", tc.settings)
			widgets := kopf.For(op, &Widget{})
			widgets.Validate("fn", admit)
			widgets.Mutate("fn", admit)
			widgets.OnCreate("fn", succeed)
			kopf.ForResource(op, "example.org", "v2", "widgets").Validate("other", admitRaw)
			kopf.ForResource(op, "others").Validate("fn", admitRaw)
			_, err := kopf.Plan(op, newScheme(t))
			if fine := err == nil; fine != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What can be said of the labels is said to the API server, too.
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
		narrow(kopf.For(op, &Widget{})).Validate("fn", admit)
		plan, err := kopf.Plan(op, newScheme(t))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, fmt.Sprint(plan[0].Handler.Labels)); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	}
}

func TestOptionsOfAdmission(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	widgets.Validate("plain", admit)
	widgets.Mutate("all", admit, kopf.SideEffects(), kopf.IgnoreFailures(), kopf.Persistent(), kopf.Subresource("*"))
	plan, err := kopf.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, one := range plan {
		h := one.Handler
		got = append(got, fmt.Sprint(h.Mutating, h.SideEffects, h.IgnoreFailures, h.Persistent, h.Subresource))
	}
	if d := cmp.Diff([]string{"false false false false", "true true true true*"}, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}
