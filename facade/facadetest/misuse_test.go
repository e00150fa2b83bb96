package facadetest_test

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// TestMistakes shows that a wrong use of the package panics with a hint. It must not look like an error of the handler.
func TestMistakes(t *testing.T) {
	succeed := func(context.Context, *DatabaseChange) error { return nil }
	makes := func(options ...facadetest.Option) func() {
		return func() { facadetest.NewChange(orders(), options...).Call(t.Context(), succeed) }
	}
	asks := func(options ...facadetest.Option) func() {
		return func() {
			facadetest.NewAdmission(orders(), options...).Validate(t.Context(),
				func(context.Context, *DatabaseAdmission) error { return nil })
		}
	}
	request := func(o admissionv1.Operation) facadetest.Option {
		return facadetest.Request(admissionv1.AdmissionRequest{Operation: o})
	}
	for name, tc := range map[string]struct {
		call func()
		want []string
	}{
		"NoObject": {
			func() { facadetest.NewChange[*Database](nil) }, []string{"NewChange", "&v1.Database{}"},
		},
		"NoKind": {
			func() { facadetest.NewChange(new(rawObject)) }, []string{"has no apiVersion and kind"},
		},
		"NilOption":   {makes(nil), []string{"an option is nil"}},
		"OtherOption": {makes(request("")), []string{"NewChange takes no Request", "Old Field"}},
		"Twice":       {makes(facadetest.Retry(1), facadetest.Retry(2)), []string{"Retry is given twice"}},
		"OldNil":      {makes(facadetest.Old((*Database)(nil))), []string{"Old is nil"}},
		"OldOther": {
			makes(facadetest.Old(new(rawObject))), []string{"Old is a *unstructured", "*facadetest_test.Database"},
		},
		"FieldPath":  {makes(facadetest.Field("spec.sise", 1, 2)), []string{"spec.sise", "size"}},
		"FieldValue": {makes(facadetest.Field("spec.size", 1, "big")), []string{`Field("spec.size")`, "big"}},
		"ID":         {makes(facadetest.ID("a b")), []string{"registering the handler", "a b"}},
		"Update":     {makes(facadetest.Reason(kopf.ReasonUpdate)), []string{"pass Old or Field"}},
		"OldCreation": {
			makes(facadetest.Reason(kopf.ReasonCreate), facadetest.Old(orders())), []string{"nothing old"},
		},
		"Reason":       {makes(facadetest.Reason("birthday")), []string{"birthday"}},
		"NoFunction":   {func() { facadetest.NewChange(orders()).Call(t.Context(), nil) }, []string{"is nil"}},
		"NoStopReason": {func() { facadetest.NewTask(orders()).Stop(nil) }, []string{"kopf.ErrDeleted"}},
		"EarlyEdit":    {func() { facadetest.NewTask(orders()).Edit(nil) }, []string{"not called yet"}},
		"EarlyDelete":  {func() { facadetest.NewChange(orders()).Delete() }, []string{"not called yet"}},
		"OwnsAlone":    {makes(facadetest.Owns(pod())), []string{"Owns", "Client", "pass both"}},
		"OwnsNil":      {makes(facadetest.Owns(nil), facadetest.Client(newFake())), []string{"&appsv1.Deployment{}"}},
		"OwnsUnknown": {
			makes(facadetest.Owns(orders()), facadetest.Client(newFake())),
			[]string{"the scheme of the client does not know a *facadetest_test.Database"},
		},
		"NilMemo": {
			func() { facadetest.NewMemo(map[object]*int{orders(): nil}) }, []string{"NewMemo", "leave it out"},
		},
		"UpdateWithoutOld": {asks(request(admissionv1.Update)), []string{"pass Old"}},
		"CreationWithOld": {
			asks(request(admissionv1.Create), facadetest.Old(orders())), []string{"nothing old in a creation"},
		},
		"DeletionWithOld": {
			asks(request(admissionv1.Delete), facadetest.Old(orders())), []string{"about one object"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			contains(t, panicOf(t, tc.call), append(tc.want, "facadetest: ")...)
		})
	}
}

func TestNotCalled(t *testing.T) {
	succeed := func(context.Context, *DatabaseChange) error { return nil }
	got := facadetest.NewChange(orders(), facadetest.Old(orders())).Call(t.Context(), succeed)
	contains(t, errorText(got.Err), `the reason "update"`, `the reason "noop"`, "does Old differ")

	got = facadetest.NewChange(orders(), facadetest.Field("spec.size", 1, 2)).
		Call(t.Context(), succeed, kopf.NewValue(7))
	contains(t, errorText(got.Err), "kopf.Value")

	ended, end := context.WithCancel(t.Context())
	end()
	got = facadetest.NewChange(orders()).Call(ended, succeed)
	contains(t, errorText(got.Err), "context canceled")
	if got.Called {
		t.Error("a handler must not be called after its context has ended")
	}
}
