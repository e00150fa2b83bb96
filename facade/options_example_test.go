package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// fail returns an ordinary error: neither temporary nor permanent.
func fail(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return errors.New("no connection") }

// The limit counts the calls for one change.
func ExampleRetries() {
	c := facadetest.NewChange(&corev1.ConfigMap{})
	for range 2 {
		got := c.Call(context.Background(), fail, kopf.Retries(2))
		fmt.Println(got.Final, got.Err)
	}
	// Output:
	// false no connection
	// true gave up after 2 attempts: no connection
}

// The limit counts the time since the handler was due.
func ExampleTimeout() {
	anHourAgo := facadetest.Started(time.Now().Add(-time.Hour))
	got := facadetest.NewChange(&corev1.ConfigMap{}, anHourAgo).
		Call(context.Background(), fail, kopf.Timeout(time.Minute))
	fmt.Println(got.Called, got.Final, errors.Is(got.Err, kopf.ErrTimeout))
	// Output: false true true
}

func ExampleBackoff() {
	got := facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(), fail, kopf.Backoff(5*time.Second))
	fmt.Println(got.Final, got.Delay)
	// Output: false 5s
}

// The modes decide about ordinary errors.
func ExampleErrors() {
	for _, mode := range []kopf.ErrorsMode{kopf.ErrorsTemporary, kopf.ErrorsPermanent, kopf.ErrorsIgnored} {
		got := facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(), fail, kopf.Errors(mode))
		fmt.Println(got.Final, got.Delay)
	}
	// Output:
	// false 1m0s
	// true 0s
	// true 0s
}

// The handler runs for updates that change the field to a matching value.
func ExampleValue() {
	type Change = kopf.Change[*corev1.ConfigMap]

	succeed := func(context.Context, *Change) error { return nil }
	update := func(before, after any, option kopf.Option) bool {
		c := facadetest.NewChange(&corev1.ConfigMap{}, facadetest.Field("data.size", before, after))
		return c.Call(context.Background(), succeed, option).Called
	}
	fmt.Println("the new value matches:", update("3", "5", kopf.Value("5")))
	fmt.Println("the old value matches:", update("5", "3", kopf.Value("5")))
	fmt.Println("no value matches:", update("3", "4", kopf.Value("5")))
	fmt.Println("the field is new:", update(nil, "3", kopf.OldValue(kopf.Absent)))
	fmt.Println("the field exists:", update("3", "4", kopf.NewValue(kopf.Present)))
	// Output:
	// the new value matches: true
	// the old value matches: true
	// no value matches: false
	// the field is new: true
	// the field exists: true
}

// The handler runs for updates that add keys.
func ExampleWhenChange() {
	type Change = kopf.Change[*corev1.ConfigMap]

	succeed := func(context.Context, *Change) error { return nil }
	grows := func(_ context.Context, c *Change) bool { return len(c.Object.Data) > len(c.Old.Data) }
	short := &corev1.ConfigMap{}
	long := &corev1.ConfigMap{Data: map[string]string{"text": "apples"}}
	for _, c := range []*facadetest.Change[*corev1.ConfigMap]{
		facadetest.NewChange(long, facadetest.Old(short)),
		facadetest.NewChange(short, facadetest.Old(long)),
	} {
		fmt.Println(c.Call(context.Background(), succeed, kopf.WhenChange(grows)).Called)
	}
	// Output:
	// true
	// false
}

// The handler runs only for deletions.
func ExampleWhenEvent() {
	type WatchEvent = kopf.WatchEvent[*corev1.ConfigMap]

	var report kopf.WatchEventFunc[*corev1.ConfigMap] = func(context.Context, *WatchEvent) error { return nil }
	isDeletion := func(_ context.Context, e *WatchEvent) bool { return e.Type == kopf.WatchEventDeleted }
	for _, eventType := range []kopf.WatchEventType{kopf.WatchEventModified, kopf.WatchEventDeleted} {
		got := facadetest.NewWatchEvent(eventType, &corev1.ConfigMap{}).
			Call(context.Background(), report, kopf.WhenEvent(isDeletion))
		fmt.Println(eventType, got.Called)
	}
	// Output:
	// MODIFIED false
	// DELETED true
}

// The handler runs for children with data.
func ExampleWhenChild() {
	type Event = kopf.ChildEvent[*corev1.ConfigMap, *corev1.Secret]

	count := func(context.Context, *Event) error { return nil }
	hasData := func(_ context.Context, s *corev1.Secret) bool { return len(s.Data) > 0 }
	for _, data := range []map[string][]byte{nil, {"password": []byte("x")}} {
		got := facadetest.NewChildEvent(kopf.WatchEventAdded, &corev1.ConfigMap{}, &corev1.Secret{Data: data}).
			Call(context.Background(), count, kopf.WhenChild(hasData))
		fmt.Println(got.Called)
	}
	// Output:
	// false
	// true
}

// A failed deletion holds the object until an edit calls the handler again.
func ExampleHoldOnFailure() {
	type Change = kopf.Change[*corev1.ConfigMap]

	release := func(context.Context, *Change) error { return kopf.Permanent(errors.New("the disk is in use")) }
	got := facadetest.NewChange(&corev1.ConfigMap{}, facadetest.Reason(kopf.ReasonDelete)).
		Call(context.Background(), release, kopf.HoldOnFailure())
	fmt.Println(got.Final, got.Err)
	// Output: true the disk is in use
}

// Predicates are joined for filters.
func ExampleAll() {
	hasData := func(_ context.Context, m *corev1.ConfigMap) bool { return len(m.Data) > 0 }
	isFixed := func(_ context.Context, m *corev1.ConfigMap) bool { return m.Immutable != nil }
	note := &corev1.ConfigMap{Data: map[string]string{"text": "apples"}}
	fmt.Println(kopf.All(hasData, kopf.Not(isFixed))(context.Background(), note))
	fmt.Println(kopf.All(hasData, isFixed)(context.Background(), note))
	fmt.Println(kopf.Any(hasData, isFixed)(context.Background(), note))
	// Output:
	// true
	// false
	// true
}

// A lifecycle decides how many sub-handlers one pass calls.
func ExampleLifecycle() {
	type Change = kopf.Change[*corev1.ConfigMap]

	lastTwo := kopf.LifecycleFunc(func(_ context.Context, due []kopf.Attempt) []kopf.Attempt { return due[1:] })
	for _, lifecycle := range []kopf.Lifecycle{
		kopf.InOrder, kopf.AllAtOnce, kopf.Shuffled, kopf.ASAP, kopf.OneByOne, kopf.Randomized, lastTwo,
	} {
		got := facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(),
			func(ctx context.Context, c *Change) error {
				for _, id := range []string{"a", "b", "c"} {
					c.Sub(id, func(context.Context, *Change) error { return nil })
				}
				return c.RunSubs(ctx, lifecycle)
			})
		calls := 0
		for _, sub := range got.Subs {
			if sub.Called {
				calls++
			}
		}
		fmt.Println(lifecycle, calls)
	}
	// Output:
	// InOrder 3
	// AllAtOnce 3
	// Shuffled 3
	// ASAP 1
	// OneByOne 1
	// Randomized 1
	// LifecycleFunc 2
}

// StopReason returns why a daemon must end.
func ExampleTask_StopReason() {
	type Task = kopf.Task[*corev1.ConfigMap]

	var follow kopf.TaskFunc[*corev1.ConfigMap] = func(_ context.Context, r *Task) error {
		<-r.Stopping()
		fmt.Println(errors.Is(r.StopReason(), kopf.ErrPaused), r.Sleep(time.Hour))
		return nil
	}
	for _, reason := range []error{kopf.ErrPaused, kopf.ErrExiting} {
		facadetest.NewTask(&corev1.ConfigMap{}, facadetest.Stopping(reason)).Call(context.Background(), follow)
	}
	// Output:
	// true false
	// false false
}

// The result of another handler is read from the status.
func ExampleResult() {
	pod := &kopf.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "status": map[string]any{"provision": "10.0.0.1"},
	}}
	got := facadetest.NewChange(pod).Call(context.Background(),
		func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
			host, err := kopf.Result[string](c, "provision")
			fmt.Println(host, err)
			_, err = kopf.Result[string](c, "expose")
			fmt.Println(errors.Is(err, kopf.ErrNoResult))
			c.SetResult("done")
			kopf.PatchField(c, "status.phase", "Ready")
			return nil
		})
	fmt.Println(got.Result, kopf.GetFieldOr(got.Object, "status.phase", ""))
	// Output:
	// 10.0.0.1 <nil>
	// true
	// done Ready
}

// A handler of a field gets the values before and after.
func ExampleFieldChange() {
	got := facadetest.NewChange(&corev1.Pod{}, facadetest.Field("spec.nodeName", "one", "two")).
		Call(context.Background(), func(_ context.Context, c *kopf.Change[*corev1.Pod]) error {
			before, after := kopf.FieldChange[string](c)
			fmt.Println(*before, *after)
			return nil
		})
	fmt.Println(got.Err)
	// Output:
	// one two
	// <nil>
}

// Errors of the command line have codes.
func ExampleExitCode() {
	fmt.Println(kopf.ExitCode(nil), kopf.ExitCode(errors.New("no connection")))
	// Output: 0 1
}

func ExampleResource_GroupVersionResource() {
	resource := kopf.Resource{Plural: "deployments"}
	resource.Group, resource.Version = "apps", "v1"
	fmt.Println(resource.GroupVersionResource().Resource, resource)
	// Output: deployments apps/v1/deployments
}
