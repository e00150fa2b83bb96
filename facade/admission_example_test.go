package kopf_test

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// The handler denies the request. The test kit calls it as the API server does.
func ExampleSelection_Validate() {
	limit := func(_ context.Context, a *kopf.Admission[*corev1.ConfigMap]) error {
		if len(a.Object.Data) > 1 {
			return kopf.Deny(http.StatusForbidden, "%d keys are too many", len(a.Object.Data))
		}
		a.Warning("notes are deleted after a year")
		return nil
	}
	op := kopf.New("notes.example.org")
	kopf.For(op, &corev1.ConfigMap{}).Validate("limit", limit)

	for _, data := range []map[string]string{{"text": "apples"}, {"text": "apples", "author": "ann"}} {
		got := facadetest.NewAdmission(&corev1.ConfigMap{Data: data}).Validate(context.Background(), limit)
		fmt.Println(got.Allowed, got.Message, got.Warnings)
	}
	// Output:
	// true  [notes are deleted after a year]
	// false 2 keys are too many []
}

// The handler changes the object before it is stored.
func ExampleSelection_Mutate() {
	setDefaults := func(_ context.Context, a *kopf.Admission[*corev1.ConfigMap]) error {
		a.Patch(func(m *corev1.ConfigMap) { m.Data = map[string]string{"text": "empty"} })
		return nil
	}
	op := kopf.New("notes.example.org")
	kopf.For(op, &corev1.ConfigMap{}).Mutate("defaults", setDefaults, kopf.Operations(admissionv1.Create))

	got := facadetest.NewAdmission(&corev1.ConfigMap{}).Mutate(context.Background(), setDefaults)
	fmt.Println(got.Allowed, got.Object.Data["text"])
	// Output: true empty
}

func ExampleDeny() {
	err := kopf.Deny(http.StatusForbidden, "the size of %s is fixed", "orders")
	fmt.Println(err)
	// Output: the size of orders is fixed
}

// Requests for other operations are allowed without a call.
func ExampleOperations() {
	deny := func(context.Context, *kopf.Admission[*corev1.ConfigMap]) error {
		return kopf.Deny(http.StatusForbidden, "notes are kept")
	}
	for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Delete} {
		request := facadetest.Request(admissionv1.AdmissionRequest{Operation: operation})
		got := facadetest.NewAdmission(&corev1.ConfigMap{}, request).
			Validate(context.Background(), deny, kopf.Operations(admissionv1.Delete))
		fmt.Println(operation, got.Called, got.Allowed)
	}
	// Output:
	// CREATE false true
	// DELETE true false
}

// The handler runs for writes of the status alone.
func ExampleSubresource() {
	deny := func(context.Context, *kopf.Admission[*corev1.Pod]) error {
		return kopf.Deny(http.StatusForbidden, "the status is ours")
	}
	for _, name := range []string{"", "status"} {
		request := admissionv1.AdmissionRequest{Operation: admissionv1.Update, SubResource: name}
		got := facadetest.NewAdmission(&corev1.Pod{}, facadetest.Request(request), facadetest.Old(&corev1.Pod{})).
			Validate(context.Background(), deny, kopf.Subresource("status"))
		fmt.Printf("%q %v\n", name, got.Allowed)
	}
	// Output:
	// "" true
	// "status" false
}

// The handler runs for requests of all users except one.
func ExampleWhenRequest() {
	type Admission = kopf.Admission[*corev1.ConfigMap]

	deny := func(context.Context, *Admission) error { return kopf.Deny(http.StatusForbidden, "ask ann") }
	byOthers := func(_ context.Context, a *Admission) bool { return a.UserInfo.Username != "ann" }
	for _, user := range []string{"ann", "bob"} {
		request := admissionv1.AdmissionRequest{Operation: admissionv1.Create}
		request.UserInfo.Username = user
		got := facadetest.NewAdmission(&corev1.ConfigMap{}, facadetest.Request(request)).
			Validate(context.Background(), deny, kopf.WhenRequest(byOthers))
		fmt.Println(user, got.Allowed)
	}
	// Output:
	// ann true
	// bob false
}

// The subresource scale has its own kind.
func ExampleForSubresource() {
	limit := func(_ context.Context, a *kopf.Admission[*autoscalingv1.Scale]) error {
		if a.Object.Spec.Replicas > 3 {
			return kopf.Deny(http.StatusForbidden, "3 replicas are enough")
		}
		return nil
	}
	op := kopf.New("limits.example.org")
	deployments := kopf.For(op, &appsv1.Deployment{})
	limitAll := func(scales kopf.AdmissionSelection[*autoscalingv1.Scale]) { scales.Validate("limit", limit) }
	limitAll(kopf.ForSubresource[*autoscalingv1.Scale](deployments, "scale"))

	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	got := facadetest.NewAdmission(scale).Validate(context.Background(), limit)
	fmt.Println(got.Allowed, got.Message)
	// Output: false 3 replicas are enough
}
