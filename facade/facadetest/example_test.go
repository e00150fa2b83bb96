package facadetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

type PodChange = kopf.Change[*corev1.Pod]

// pod returns the object of the examples.
func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
}

func printJSON(value any) {
	text, err := json.Marshal(value)
	fmt.Println(string(text), err)
}

// A test calls a handler and checks its outcome.
func ExampleNewChange() {
	announce := func(_ context.Context, c *PodChange) error {
		c.Patch(func(p *corev1.Pod) { p.Labels = map[string]string{"announced": "yes"} })
		c.Info("Announced", "to everybody")
		return nil
	}

	got := facadetest.NewChange(pod()).Call(context.Background(), announce)

	fmt.Println(got.Err, got.Object.Labels["announced"], got.Events[0].Message)
	printJSON(got.Patch)
	// Output:
	// <nil> yes to everybody
	// {"metadata":{"labels":{"announced":"yes"}}} <nil>
}

// Another call is the next attempt, at once, on the object as the first attempt left it.
func ExampleChange_Call() {
	provision := func(_ context.Context, c *PodChange) error {
		if c.Retry < 2 {
			return kopf.Temporary(errors.New("there is no address yet"), time.Minute)
		}
		return nil
	}

	c := facadetest.NewChange(pod())
	for range 3 {
		got := c.Call(context.Background(), provision, kopf.Retries(5))
		fmt.Println(got.Err, got.Delay, got.Final)
	}
	// Output:
	// there is no address yet 1m0s false
	// there is no address yet 1m0s false
	// <nil> 0s true
}

// Handlers read and write other objects with controller-runtime's fake client, also with c.Ensure.
func ExampleClient() {
	expose := func(ctx context.Context, c *PodChange) error {
		return c.Ensure(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}})
	}

	cluster := fake.NewClientBuilder().Build()
	got := facadetest.NewChange(pod(), facadetest.Client(cluster)).Call(context.Background(), expose)

	var service corev1.Service
	err := cluster.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "web"}, &service)
	fmt.Println(got.Err, got.Children, err, service.OwnerReferences[0].Kind)
	// Output:
	// <nil> [Service default/web] <nil> Pod
}

// A handler of a field gets the values before and after the change.
func ExampleField() {
	moved := func(_ context.Context, c *PodChange) error {
		before, after := kopf.FieldChange[string](c)
		c.SetResult(fmt.Sprintf("from %s to %s", *before, *after))
		return nil
	}

	got := facadetest.NewChange(pod(), facadetest.Field("spec.nodeName", "one", "two")).
		Call(context.Background(), moved)

	fmt.Println(got.Err, got.Result)
	// Output:
	// <nil> from one to two
}

// A daemon works until it is stopped.
func ExampleNewTask() {
	r := facadetest.NewTask(pod())
	watch := func(_ context.Context, run *kopf.Task[*corev1.Pod]) error {
		run.Patch(func(p *corev1.Pod) { p.Status.Message = "watched" })
		r.Stop(kopf.ErrDeleted) // as if the object was deleted now
		<-run.Stopping()
		run.Info("Stopped", run.StopReason().Error())
		return nil
	}

	got := r.Call(context.Background(), watch)

	fmt.Println(got.Err, got.Object.Status.Message, len(got.Events))
	// Output:
	// <nil> watched 1
}

// An admission handler denies a request.
func ExampleNewAdmission() {
	guard := func(_ context.Context, a *kopf.Admission[*corev1.Pod]) error {
		if a.Old.Labels["keep"] != a.Object.Labels["keep"] {
			return kopf.Deny(http.StatusForbidden, "the label stays")
		}
		return nil
	}
	labelled := pod()
	labelled.Labels = map[string]string{"keep": "yes"}

	got := facadetest.NewAdmission(pod(), facadetest.Old(labelled)).Validate(context.Background(), guard)

	fmt.Println(got.Allowed, got.Code, got.Message)
	// Output:
	// false 403 the label stays
}

// Handlers use an index that the test has filled.
func ExampleNewIndex() {
	onNode := facadetest.NewIndex(map[string][]string{"one": {"web", "db"}})
	count := func(_ context.Context, c *PodChange) error {
		c.SetResult(onNode.Count(c.Object.Spec.NodeName))
		return nil
	}

	p := pod()
	p.Spec.NodeName = "one"
	got := facadetest.NewChange(p).Call(context.Background(), count)

	fmt.Println(got.Result)
	// Output:
	// 2
}
