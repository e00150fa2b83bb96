package kopf_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestAdmissionOfWhatDoesNotDecode shows that an object that does not fit the handler's Go type, for example after
// a change of the type, can be repaired and deleted. A request that keeps or creates such an object gets an error
// that names the field.
func TestAdmissionOfWhatDoesNotDecode(t *testing.T) {
	type registration = func(kopf.Selection[*Widget], kopf.AdmissionFunc[*Widget])
	broken := body(map[string]any{"owner": "bob", "size": "three"})
	fixed := body(map[string]any{"owner": "bob", "size": int64(3)})
	for name, tc := range map[string]struct {
		reason     string
		request    map[string]any
		sizes      []int32 // in the old and the new object, if the handler is called
		wantDenial string
	}{
		"Repaired": {"an update that repairs the object calls the handler", map[string]any{
			"operation": "UPDATE", "oldObject": broken, "object": fixed,
		}, []int32{0, 3}, ""},
		"Deleted": {"a deletion calls the handler with the fields that decode", map[string]any{
			"operation": "DELETE", "oldObject": broken, "object": nil,
		}, []int32{0, 0}, ""},
		"Kept": {"an update that keeps the broken field is denied", map[string]any{
			"operation": "UPDATE", "oldObject": broken, "object": broken,
		}, nil, "spec.size"},
		"Created": {"a creation with a broken field is denied", map[string]any{"object": broken}, nil, "spec.size"},
	} {
		t.Run(name, func(t *testing.T) {
			operations := []admissionv1.Operation{admissionv1.Create, admissionv1.Update}
			if tc.request["operation"] == "DELETE" {
				// A mutating handler of deletions must not have other operations.
				operations = []admissionv1.Operation{admissionv1.Delete}
			}
			for family, register := range map[string]registration{
				"validate": func(s kopf.Selection[*Widget], fn kopf.AdmissionFunc[*Widget]) {
					s.Validate("fn", fn, kopf.Operations(operations...))
				},
				"mutate": func(s kopf.Selection[*Widget], fn kopf.AdmissionFunc[*Widget]) {
					s.Mutate("fn", fn, kopf.Operations(operations...))
				},
			} {
				op := kopf.New("test.example.org")
				var sizes []int32
				register(kopf.For(op, &Widget{}), func(_ context.Context, a *Admission) error {
					sizes = []int32{a.Old.Spec.Size, a.Object.Spec.Size}
					return nil
				})
				verdict := verdictOf(t.Context(), t, op, request(tc.request))
				if d := cmp.Diff(tc.sizes, sizes); d != "" {
					t.Errorf("%s: %s: sizes, -want, +got:\n%s", family, tc.reason, d)
				}
				message := ""
				if verdict.Status != nil {
					message = verdict.Status.Message
				}
				if verdict.Allowed != (tc.wantDenial == "") || !strings.Contains(message, tc.wantDenial) {
					t.Errorf("%s: %s: allowed %t: %q", family, tc.reason, verdict.Allowed, message)
				}
			}
		})
	}
}

// TestAdmissionOfHugeNumbers shows that a number without a Go value fails only handlers that read it: their raw objects
// and differences would lack it.
func TestAdmissionOfHugeNumbers(t *testing.T) {
	valid := body(map[string]any{"owner": "bob"})
	huge := body(map[string]any{"owner": "bob", "unknown": json.Number("1e400")})
	update := func(before, after map[string]any) map[string]any {
		return map[string]any{"operation": "UPDATE", "oldObject": before, "object": after}
	}
	raw, difference := func(a *Admission) { a.Raw() }, func(a *Admission) { a.Diff() }
	for name, tc := range map[string]struct {
		reason  string
		request map[string]any
		act     func(a *Admission)
		denied  bool
	}{
		"Unread":  {"fields of the Go type do not need the number", update(valid, huge), func(*Admission) {}, false},
		"Valid":   {"valid objects are read", update(valid, valid), raw, false},
		"Object":  {"a raw object without the number is an error", update(valid, huge), raw, true},
		"Old":     {"a raw old object without the number is an error", update(huge, valid), raw, true},
		"Diff":    {"a difference without the number is an error", update(valid, huge), difference, true},
		"OldDiff": {"a difference to an object without the number is an error", update(huge, valid), difference, true},
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).Validate("fn", func(_ context.Context, a *Admission) error {
				tc.act(a)
				return nil
			})
			verdict := verdictOf(t.Context(), t, op, request(tc.request))
			if verdict.Allowed == tc.denied || tc.denied && !strings.Contains(verdict.Status.Message, "1e400") {
				t.Errorf("%s: want a denial: %t, got %+v", tc.reason, tc.denied, verdict)
			}
		})
	}
}
