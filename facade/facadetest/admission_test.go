package facadetest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

func TestValidate(t *testing.T) {
	quota := func(_ context.Context, a *DatabaseAdmission) error {
		a.Warning("size %d", a.Object.Spec.Size)
		a.Object.Spec.Size = 0
		if a.Object.Spec.Owner == "eve" {
			return kopf.Deny(http.StatusForbidden, "not for %s", a.Object.Spec.Owner)
		}
		return nil
	}
	got := facadetest.NewAdmission(orders()).Validate(t.Context(), quota)
	want := facadetest.Verdict[*Database]{
		Called: true, Allowed: true, Object: orders(), Warnings: []string{"size 3"}, InPlace: []string{"spec.size"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the verdict of an allowed request: -want, +got:\n%s", d)
	}
	got = facadetest.NewAdmission(orders(func(db *Database) { db.Spec.Owner = "eve" })).Validate(t.Context(), quota)
	if got.Allowed || got.Code != http.StatusForbidden || got.Message != "not for eve" || got.Err == nil {
		t.Errorf("a denied request must have the code and the message, got %+v", got)
	}
	got = facadetest.NewAdmission(orders()).Validate(t.Context(), quota, kopf.Operations(admissionv1.Delete))
	if got.Called || !got.Allowed {
		t.Errorf("a handler for other operations must not be called: got %+v", got)
	}
}

func TestMutate(t *testing.T) {
	got := facadetest.NewAdmission(orders()).Mutate(t.Context(), func(_ context.Context, a *DatabaseAdmission) error {
		a.Object.Spec.Users = []string{a.Object.Spec.Owner}
		return nil
	})
	want := orders(func(db *Database) { db.Spec.Users = []string{"ann"} })
	if d := cmp.Diff(want, got.Object); d != "" || !got.Allowed || got.Err != nil {
		t.Errorf("the mutated object: error %v, -want, +got:\n%s", got.Err, d)
	}
	if d := cmp.Diff(`[{"op":"add","path":"/spec/users","value":["ann"]}]`, string(got.Patch)); d != "" {
		t.Errorf("the patch of the mutation: -want, +got:\n%s", d)
	}
}

func TestRequests(t *testing.T) {
	type seen struct {
		Operation admissionv1.Operation
		Old       int
		HasOld    bool
		DryRun    bool
		User      string
	}
	smaller := orders(func(db *Database) { db.Spec.Size = 1 })
	for name, tc := range map[string]struct {
		reason  string
		options []facadetest.Option
		want    seen
	}{
		"Create": {"without Old, the request is a creation", nil,
			seen{"CREATE", 0, false, false, "kubernetes-admin"}},
		"Update": {
			"Old makes the request an update", []facadetest.Option{facadetest.Old(smaller)},
			seen{"UPDATE", 1, true, false, "kubernetes-admin"},
		},
		"Delete": {
			"a deletion passes the object as Old",
			[]facadetest.Option{facadetest.Request(admissionv1.AdmissionRequest{Operation: admissionv1.Delete})},
			seen{"DELETE", 3, true, false, "kubernetes-admin"},
		},
		"Request": {
			"Request overrides fields of the request",
			[]facadetest.Option{facadetest.Request(admissionv1.AdmissionRequest{
				DryRun: ptr.To(true), UserInfo: authenticationv1.UserInfo{Username: "eve"},
			})},
			seen{"CREATE", 0, false, true, "eve"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got seen
			verdict := facadetest.NewAdmission(orders(), tc.options...).Validate(t.Context(),
				func(_ context.Context, a *DatabaseAdmission) error {
					got = seen{a.Operation, a.Old.Spec.Size, a.HasOld, a.DryRun, a.UserInfo.Username}
					return nil
				}, kopf.Operations(tc.want.Operation))
			if d := cmp.Diff(tc.want, got); d != "" || verdict.Err != nil {
				t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, verdict.Err, d)
			}
		})
	}
}
