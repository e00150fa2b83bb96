package kopf_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func TestVerbsFillHandlers(t *testing.T) {
	patient := kopf.JoinOptions(kopf.Retries(10), kopf.Timeout(time.Hour))
	cases := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     []handlers.Handler
	}{
		"create": {"the plainest verb",
			func(w kopf.Selection[*Widget]) { w.OnCreate("a", succeed) },
			[]handlers.Handler{{ID: "a", Reason: cause.Create}}},
		"update with all shared options": {"each fills its own part of the policy",
			func(w kopf.Selection[*Widget]) {
				w.OnUpdate(
					"a", succeed, kopf.Retries(3), kopf.Timeout(time.Minute), kopf.Backoff(0),
					kopf.Errors(kopf.ErrorsPermanent),
				)
			},
			[]handlers.Handler{{ID: "a", Reason: cause.Update, NeedsChange: true, Policy: handlers.Policy{
				Errors: handlers.ErrorsPermanent, Retries: ptr.To(3), Timeout: ptr.To(time.Minute), Backoff: ptr.To(
					time.Duration(0),
				),
			}}}},
		"delete": {"its own option stands beside the shared ones",
			func(w kopf.Selection[*Widget]) { w.OnDelete("a", succeed, kopf.Optional(), kopf.Retries(1)) },
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, Optional: true,
				Policy: handlers.Policy{Retries: ptr.To(1)}}}},
		"delete that holds": {"its failure keeps the object",
			func(w kopf.Selection[*Widget]) { w.OnDelete("a", succeed, kopf.HoldOnFailure()) },
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, HoldOnFailure: true}}},
		"resume": {"it joins causes of any reason, so it has none",
			func(w kopf.Selection[*Widget]) { w.OnResume("a", succeed, kopf.EvenIfDeleted()) },
			[]handlers.Handler{{ID: "a", Initial: true, EvenIfDeleted: true}}},
		"several reasons": {"they share the id, the function and the options",
			func(w kopf.Selection[*Widget]) {
				w.On(
					"a", []kopf.Reason{kopf.ReasonUpdate, kopf.ReasonResume, kopf.ReasonDelete}, succeed,
					kopf.Retries(2),
				)
			},
			[]handlers.Handler{
				{ID: "a", Reason: cause.Update, NeedsChange: true, Policy: handlers.Policy{Retries: ptr.To(2)}},
				{ID: "a", Initial: true, Policy: handlers.Policy{Retries: ptr.To(2)}},
				{ID: "a", Reason: cause.Delete, Policy: handlers.Policy{Retries: ptr.To(2)}},
			}},
		"one id under several verbs": {"ids are unique among the handlers of a verb only",
			func(w kopf.Selection[*Widget]) { w.OnCreate("a", succeed); w.OnUpdate("a", succeed) },
			[]handlers.Handler{{ID: "a", Reason: cause.Create}, {ID: "a", Reason: cause.Update, NeedsChange: true}}},
		"policy": {"it is as good as its parts",
			func(w kopf.Selection[*Widget]) { w.OnDelete("a", succeed, patient, kopf.Optional()) },
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, Optional: true,
				Policy: handlers.Policy{Retries: ptr.To(10), Timeout: ptr.To(time.Hour)}}}},
		"policy overridden": {"what stands next to it wins, also before it",
			func(w kopf.Selection[*Widget]) { w.OnCreate("a", succeed, kopf.Retries(2), patient) },
			[]handlers.Handler{{ID: "a", Reason: cause.Create,
				Policy: handlers.Policy{Retries: ptr.To(2), Timeout: ptr.To(time.Hour)}}}},
		"mixed policy": {"options of all families go into one, and count where they are taken",
			func(w kopf.Selection[*Widget]) {
				w.OnDelete("a", succeed, kopf.JoinOptions(kopf.Retries(3), kopf.Optional()))
			},
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, Optional: true,
				Policy: handlers.Policy{Retries: ptr.To(3)}}}},
		"options of single reasons": {"each counts for the reasons whose verbs take it",
			func(w kopf.Selection[*Widget]) {
				w.On(
					"a",
					append(kopf.CreateUpdateResume(), kopf.ReasonDelete),
					succeed,
					kopf.JoinOptions(kopf.Optional()),
					kopf.EvenIfDeleted(),
					kopf.Retries(3),
				)
			},
			[]handlers.Handler{
				{ID: "a", Reason: cause.Create, Policy: handlers.Policy{Retries: ptr.To(3)}},
				{ID: "a", Reason: cause.Update, NeedsChange: true, Policy: handlers.Policy{Retries: ptr.To(3)}},
				{ID: "a", Initial: true, EvenIfDeleted: true, Policy: handlers.Policy{Retries: ptr.To(3)}},
				{ID: "a", Reason: cause.Delete, Optional: true, Policy: handlers.Policy{Retries: ptr.To(3)}},
			}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			c.register(kopf.For(op, &Widget{}))
			plan, err := kopf.Plan(op, newScheme(t))
			if err != nil {
				t.Fatal(err)
			}
			var got []handlers.Handler
			for _, r := range plan {
				got = append(got, *r.Handler)
				if r.Handler.Call == nil || r.Handler.Function != plan[0].Handler.Function {
					t.Errorf("the function is not the one that was given")
				}
				if !strings.HasPrefix(r.Handler.Location, "facade/verbs_test.go:") {
					t.Errorf("location: %s", r.Handler.Location)
				}
			}
			ignored := cmpopts.IgnoreFields(handlers.Handler{}, "Call", "Function", "Instance", "Location", "Filters")
			if d := cmp.Diff(c.want, got, ignored); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	widget := &Widget{}
	widget.APIVersion, widget.Kind = "other.org/v2", "Gadget"
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion("raw.org/v1")
	raw.SetKind("Raw")
	ok := func(context.Context, *Raw) error { return nil }
	cases := map[string]struct {
		reason   string
		register func(op *kopf.Operator)
		want     discovery.Selector
	}{
		"type": {"the scheme knows its kind",
			func(op *kopf.Operator) { kopf.For(op, &Widget{}).OnCreate("a", succeed) },
			discovery.OfKind(widgets.WithKind("Widget"))},
		"type with a kind": {"one type may stand for several kinds",
			func(op *kopf.Operator) { kopf.For(op, widget).OnCreate("a", succeed) },
			discovery.OfKind(schema.GroupVersionKind{Group: "other.org", Version: "v2", Kind: "Gadget"})},
		"unstructured with a kind": {"no scheme is needed",
			func(op *kopf.Operator) { kopf.For(op, raw).OnCreate("a", ok) },
			discovery.OfKind(schema.GroupVersionKind{Group: "raw.org", Version: "v1", Kind: "Raw"})},
		"resource": {"by whatever name",
			func(op *kopf.Operator) { kopf.ForResource(op, "kopf.dev/v1", "kopfexamples").OnCreate("a", ok) },
			discovery.Selector{
				Group: discovery.Given("kopf.dev"), Version: discovery.Given("v1"), Name: "kopfexamples"}},
		"core resource": {"the core group has no name",
			func(op *kopf.Operator) { kopf.ForResource(op, "v1", "Pod").OnCreate("a", ok) },
			discovery.Selector{Group: discovery.Given(""), Version: discovery.Given("v1"), Name: "Pod"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			c.register(op)
			plan, err := kopf.Plan(op, newScheme(t))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, plan[0].Selector); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

func TestFunctionsAreTold(t *testing.T) {
	op := kopf.New("test.example.org")
	w := kopf.For(op, &Widget{})
	other := func(context.Context, *Change) error { return nil }
	w.OnCreate("a", succeed)
	w.OnUpdate("a", succeed)
	w.OnDelete("a", other)
	plan, err := kopf.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	first, same, different := plan[0].Handler.Function, plan[1].Handler.Function, plan[2].Handler.Function
	if first != same {
		t.Error("one function registered twice is not the same: it would be called twice for a mixed cause")
	}
	if first == different {
		t.Error("two functions are taken for one")
	}
}
