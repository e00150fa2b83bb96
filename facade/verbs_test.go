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
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestVerbsFillHandlers shows the description of a handler that each verb registers.
func TestVerbsFillHandlers(t *testing.T) {
	patient := kopf.JoinOptions(kopf.Retries(10), kopf.Timeout(time.Hour))
	cases := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     []handlers.Handler
	}{
		"create": {"a create handler has only its id and reason",
			func(w kopf.Selection[*Widget]) { w.OnCreate("a", succeed) },
			[]handlers.Handler{{ID: "a", Reason: cause.Create}}},
		"update with all shared options": {"each shared option sets its own part of the policy",
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
		"delete": {"a delete handler has its own option beside a shared one",
			func(w kopf.Selection[*Widget]) { w.OnDelete("a", succeed, kopf.Optional(), kopf.Retries(1)) },
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, Optional: true,
				Policy: handlers.Policy{Retries: ptr.To(1)}}}},
		"delete that holds": {"HoldOnFailure is passed to the handler",
			func(w kopf.Selection[*Widget]) { w.OnDelete("a", succeed, kopf.HoldOnFailure()) },
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, HoldOnFailure: true}}},
		"resume": {"a resume handler joins causes of all reasons, so it does not have a reason",
			func(w kopf.Selection[*Widget]) { w.OnResume("a", succeed, kopf.EvenIfDeleted()) },
			[]handlers.Handler{{ID: "a", Initial: true, EvenIfDeleted: true}}},
		"several reasons": {"handlers of several reasons share the id, the function and the options",
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
		"one id under several verbs": {"handlers of different verbs can have the same id",
			func(w kopf.Selection[*Widget]) { w.OnCreate("a", succeed); w.OnUpdate("a", succeed) },
			[]handlers.Handler{{ID: "a", Reason: cause.Create}, {ID: "a", Reason: cause.Update, NeedsChange: true}}},
		"policy": {"joined options have the effect of their parts",
			func(w kopf.Selection[*Widget]) { w.OnDelete("a", succeed, patient, kopf.Optional()) },
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, Optional: true,
				Policy: handlers.Policy{Retries: ptr.To(10), Timeout: ptr.To(time.Hour)}}}},
		"policy overridden": {"a single option overrides a joined one, even one that follows",
			func(w kopf.Selection[*Widget]) { w.OnCreate("a", succeed, kopf.Retries(2), patient) },
			[]handlers.Handler{{ID: "a", Reason: cause.Create,
				Policy: handlers.Policy{Retries: ptr.To(2), Timeout: ptr.To(time.Hour)}}}},
		"mixed policy": {"options of several families can be joined, and each applies to its family",
			func(w kopf.Selection[*Widget]) {
				w.OnDelete("a", succeed, kopf.JoinOptions(kopf.Retries(3), kopf.Optional()))
			},
			[]handlers.Handler{{ID: "a", Reason: cause.Delete, Optional: true,
				Policy: handlers.Policy{Retries: ptr.To(3)}}}},
		"options of single reasons": {"each option applies to the reasons whose verbs accept it",
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
			plan := planOf(t, op)
			var got []handlers.Handler
			for _, r := range plan {
				got = append(got, *r.Handler)
				if r.Handler.Call == nil || r.Handler.FunctionKey != plan[0].Handler.FunctionKey {
					t.Errorf("the function must be the one that was given")
				}
				if !strings.HasPrefix(r.Handler.Location, "facade/verbs_test.go:") {
					t.Errorf("location: %s", r.Handler.Location)
				}
			}
			ignored := cmpopts.IgnoreFields(handlers.Handler{},
				"Call", "FunctionKey", "InstanceKey", "Location", "Filters")
			if d := cmp.Diff(c.want, got, ignored); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestKinds shows which kind each way of selection selects.
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
		"type": {"the kind of a Go type comes from the scheme",
			func(op *kopf.Operator) { kopf.For(op, &Widget{}).OnCreate("a", succeed) },
			discovery.OfKind(widgets.WithKind("Widget"))},
		"type with a kind": {"a kind in the prototype overrides the scheme",
			func(op *kopf.Operator) { kopf.For(op, widget).OnCreate("a", succeed) },
			discovery.OfKind(schema.GroupVersionKind{Group: "other.org", Version: "v2", Kind: "Gadget"})},
		"unstructured with a kind": {"an unstructured prototype with a kind does not need a scheme",
			func(op *kopf.Operator) { kopf.For(op, raw).OnCreate("a", ok) },
			discovery.OfKind(schema.GroupVersionKind{Group: "raw.org", Version: "v1", Kind: "Raw"})},
		"resource": {"a resource is selected by group, version and name",
			func(op *kopf.Operator) { kopf.ForResource(op, "kopf.dev/v1", "kopfexamples").OnCreate("a", ok) },
			discovery.Selector{
				Group: discovery.NewSelectorPart("kopf.dev"), Version: discovery.NewSelectorPart("v1"),
				Name: "kopfexamples"}},
		"core resource": {"a version without a group selects the core group",
			func(op *kopf.Operator) { kopf.ForResource(op, "v1", "Pod").OnCreate("a", ok) },
			discovery.Selector{Group: discovery.NewSelectorPart(""), Version: discovery.NewSelectorPart("v1"),
				Name: "Pod"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			c.register(op)
			plan := planOf(t, op)
			if d := cmp.Diff(c.want, plan[0].Selector); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestFunctionsAreDistinguished shows that registrations of one function are distinguished from those of another one.
func TestFunctionsAreDistinguished(t *testing.T) {
	op := kopf.New("test.example.org")
	w := kopf.For(op, &Widget{})
	other := func(context.Context, *Change) error { return nil }
	w.OnCreate("a", succeed)
	w.OnUpdate("a", succeed)
	w.OnDelete("a", other)
	plan := planOf(t, op)
	first, same, different := plan[0].Handler.FunctionKey, plan[1].Handler.FunctionKey, plan[2].Handler.FunctionKey
	if first != same {
		t.Error("one function registered twice must be the same, or a mixed cause would call it twice")
	}
	if first == different {
		t.Error("two functions must not be the same")
	}
}
