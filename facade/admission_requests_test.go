package kopf_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func exitGoroutine() { runtime.Goexit() }

// TestAdmission shows which requests call a handler, and the arguments of the call.
func TestAdmission(t *testing.T) {
	type seen struct {
		Owner, Old             string
		HasOld, DryRun         bool
		Operation, Subresource string
		Diff                   int
	}
	old := body(map[string]any{"owner": "bob"})
	tests := map[string]struct {
		reason  string
		request map[string]any
		opts    []kopf.Option
		want    *seen // nil if the handler is not called
	}{
		"creation": {"a creation has no old object", request(nil), nil, &seen{
			Owner: "ann", Operation: "CREATE", Diff: 1,
		}},
		"update": {
			"an update has the old and the new object",
			request(map[string]any{"operation": "UPDATE", "oldObject": old}), nil, &seen{
				Owner: "ann", Old: "bob", HasOld: true, Operation: "UPDATE", Diff: 5,
			}},
		"deletion": {"the object of a deletion is the deleted one", deletion(), []kopf.Option{
			kopf.Operations("UPDATE", "DELETE"),
		}, &seen{
			Owner: "ann", Old: "ann", HasOld: true, Operation: "DELETE", Diff: 1,
		}},
		"deletion by default": {
			"a deletion does not call a handler without Operations", deletion(), nil, nil,
		},
		"dry run": {"a dry run calls the handler with DryRun set", request(map[string]any{"dryRun": true}), nil, &seen{
			Owner: "ann", DryRun: true, Operation: "CREATE", Diff: 1,
		}},
		"status": {
			"a status request calls a handler of the status",
			request(map[string]any{"subResource": "status"}), []kopf.Option{
				kopf.Subresource("status"),
			}, &seen{Owner: "ann", Operation: "CREATE", Subresource: "status", Diff: 1},
		},
		"not the status": {
			"a status request does not call a handler of the object",
			request(map[string]any{"subResource": "status"}), nil, nil,
		},
		"a value": {
			"a matching value filter calls the handler",
			request(nil), []kopf.Option{kopf.InField("spec.owner"), kopf.Value("ann")},
			&seen{Owner: "ann", Operation: "CREATE", Diff: 1}},
		"another value": {"a value filter that does not match skips the handler", request(nil), []kopf.Option{
			kopf.InField("spec.owner"), kopf.Value("bob"),
		}, nil},
		"a policy": {"joined options apply to admission handlers", request(nil), []kopf.Option{kopf.JoinOptions(
			kopf.Operations("UPDATE"), kopf.SideEffects(), kopf.IgnoreFailures(), kopf.Persistent(),
		)}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			var got *seen
			kopf.For(op, &Widget{}).Validate("fn", func(_ context.Context, a *Admission) error {
				got = &seen{
					a.Object.Spec.Owner, a.Old.Spec.Owner, a.HasOld, a.DryRun, string(a.Operation), a.Subresource,
					len(a.Diff()),
				}
				user := authenticationv1.UserInfo{Username: "ann", Groups: []string{"staff"}}
				if d := cmp.Diff(user, a.UserInfo); d != "" {
					t.Errorf("the handler gets the user of the request: -want, +got:\n%s", d)
				}
				if a.Name != "w1" || a.Namespace != "ns" || a.Headers.Get("a") != "b" {
					t.Errorf("the handler gets the name, the namespace and the headers: got %q, %q, %v",
						a.Name, a.Namespace, a.Headers)
				}
				a.Warning("seen %d", 1)
				return nil
			}, kopf.JoinOptions(tc.opts...))
			verdict := verdictOf(t.Context(), t, op, tc.request)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			var warnings []string
			if tc.want != nil {
				warnings = []string{"seen 1"}
			}
			if d := cmp.Diff(warnings, verdict.Warnings); !verdict.Allowed || d != "" {
				t.Errorf("allowed %v, warnings: -want, +got:\n%s", verdict.Allowed, d)
			}
		})
	}
}

// scaleRequest returns a request to scale a widget.
func scaleRequest() map[string]any {
	return request(map[string]any{
		"operation": "UPDATE", "subResource": "scale", "object": map[string]any{
			"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": "w1"},
			"spec": map[string]any{"replicas": 5, "unknown": true},
		},
	})
}

// TestSubresourcesOfTheirOwnKinds shows that handlers of a subresource get its own kind, and that handlers of the
// object are not called for it.
func TestSubresourcesOfTheirOwnKinds(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	scales := kopf.ForSubresource[*autoscalingv1.Scale](widgets, "scale")
	scales.Mutate("limit", func(_ context.Context, a *kopf.Admission[*autoscalingv1.Scale]) error {
		a.Object.Spec.Replicas = min(a.Object.Spec.Replicas, 3)
		return nil
	})
	scales.When(func(_ context.Context, s *autoscalingv1.Scale) bool { return s.Spec.Replicas > 9 }).Validate("large",
		func(context.Context, *kopf.Admission[*autoscalingv1.Scale]) error { return kopf.Deny(403, "too large") })
	widgets.Validate("whole", func(context.Context, *Admission) error { return kopf.Deny(403, "not the whole") })
	verdict := verdictOf(t.Context(), t, op, scaleRequest())
	want := `[{"op":"replace","path":"/spec/replicas","value":3}]`
	if !verdict.Allowed || string(verdict.Patch) != want {
		t.Errorf("the handler changes the scale object: got %+v, %+v, %s, want %s",
			verdict, verdict.Status, verdict.Patch, want)
	}
}

// TestSubresourcesOfOtherKinds shows that a subresource object of another kind is denied instead of decoded into
// the wrong Go type.
func TestSubresourcesOfOtherKinds(t *testing.T) {
	for name, subresource := range map[string]string{"any": "*", "its own": "resize"} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).Validate("fn", func(context.Context, *Admission) error { return nil },
				kopf.Subresource(subresource))
			asked := scaleRequest()
			if subresource != "*" {
				asked["subResource"] = subresource
			}
			verdict := verdictOf(t.Context(), t, op, asked)
			if verdict.Allowed || !strings.Contains(verdict.Status.Message, "Scale of autoscaling/v1") {
				t.Errorf("the error names the other kind: got %+v, %+v", verdict, verdict.Status)
			}
		})
	}
}

// TestConnect shows that a handler of CONNECT gets the options object, which has another kind and no metadata.
func TestConnect(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.ForSubresource[*kopf.Unstructured](kopf.For(op, &Widget{}), "exec").Validate("fn",
		func(_ context.Context, a *RawAdmission) error {
			command, err := kopf.GetField[[]string](a.Object, "command")
			if err != nil || a.Operation != "CONNECT" {
				return kopf.Deny(400, "%s: %v", a.Operation, err)
			}
			return kopf.Deny(403, "no %v in %s", command, a.Name)
		}, kopf.Operations("CONNECT"))
	verdict := verdictOf(t.Context(), t, op, request(map[string]any{
		"operation": "CONNECT", "subResource": "exec", "object": map[string]any{
			"apiVersion": "v1", "kind": "PodExecOptions", "command": []any{"sh"},
		},
	}))
	if verdict.Allowed || verdict.Status.Message != "no [sh] in w1" {
		t.Errorf("the handler gets the command of the options object: got %+v, %+v", verdict, verdict.Status)
	}
}

// TestValidateDeletion shows that a handler without Operations is called for deletions with AsKopf only. Deviation:
// D-validate-delete.
func TestValidateDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		settings kopf.Settings
		allowed  bool
	}{"own": {kopf.Settings{}, true}, "AsKopf": {kopf.AsKopf(), false}} {
		op := kopf.New("test.example.org", tc.settings)
		kopf.For(op, &Widget{}).Validate("fn", func(context.Context, *Admission) error { return kopf.Deny(403, "no") })
		for range 2 { // a second plan registers the same handlers again
			if verdict := verdictOf(t.Context(), t, op, deletion()); verdict.Allowed != tc.allowed {
				t.Errorf("%s: unexpected response to a deletion: got %+v", name, verdict)
			}
		}
		if verdict := verdictOf(t.Context(), t, op, request(nil)); verdict.Allowed {
			t.Errorf("%s: a creation calls the handler: got %+v", name, verdict)
		}
	}
}

// TestMutateDeletion shows that a mutating handler of deletions must not change the object, as API servers refuse
// such patches.
func TestMutateDeletion(t *testing.T) {
	for name, change := range map[string]func(a *Admission){
		"nothing":  func(*Admission) {},
		"in place": func(a *Admission) { a.Object.Spec.Size = 3 },
		"by patch": func(a *Admission) { a.Patch(func(w *Widget) { w.Spec.Size = 3 }) },
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			widgets := kopf.For(op, &Widget{})
			calls := 0
			widgets.Mutate("fn", func(_ context.Context, a *Admission) error { calls++; change(a); return nil },
				kopf.Operations("DELETE"))
			widgets.Mutate("all", func(context.Context, *Admission) error { return kopf.Deny(403, "called") })
			verdict := verdictOf(t.Context(), t, op, deletion())
			if allowed := name == "nothing"; calls != 1 || verdict.Allowed != allowed || verdict.Patch != nil {
				t.Errorf("got %d calls, %+v, want allowed %v", calls, verdict, allowed)
			}
		})
	}
}

// TestValidateChangesNothing shows that changes by a validating handler are not applied: Patch is an error, and a
// change in place is logged once.
func TestValidateChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(a *Admission)
		wantDenial  string
		wantWarning string
	}{
		"nothing":  {change: func(*Admission) {}},
		"in place": {change: func(a *Admission) { a.Object.Spec.Size = 3 }, wantWarning: `["spec.size"]`},
		"by patch": {
			change:     func(a *Admission) { a.Patch(func(w *Widget) { w.Spec.Size = 3 }) },
			wantDenial: "a validating handler cannot change the object: register it with Mutate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).Validate("fn", func(_ context.Context, a *Admission) error {
				tc.change(a)
				return nil
			})
			var lines []string
			all := reviewerOf(t, op)
			for range 2 {
				verdict := all.ask(withLogLines(t.Context(), &lines), t, request(nil))
				said := ""
				if verdict.Status != nil {
					said = verdict.Status.Message
				}
				if verdict.Patch != nil || verdict.Allowed == (tc.wantDenial != "") ||
					!strings.Contains(said, tc.wantDenial) {
					t.Errorf("a validating handler cannot change the object: got %+v, %q", verdict, said)
				}
			}
			warnings := linesWith(lines, "Validating handler changed its copy")
			if told := len(warnings) == 1 && strings.Contains(warnings[0],
				tc.wantWarning); told != (tc.wantWarning != "") {
				t.Errorf("an ignored change is logged once: want %q once, got %q", tc.wantWarning, warnings)
			}
		})
	}
}
