package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// runInMemory runs the operator against an API server in memory that has these objects. Stop ends the operator.
func runInMemory(op *kopf.Operator, existing ...client.Object) (cluster client.Client, stop func()) {
	return runAgainst(memapi.New(), op, existing...)
}

func runAgainst(
	server *memapi.Server, op *kopf.Operator, existing ...client.Object,
) (cluster client.Client, stop func()) {
	config := memapi.Config(server)
	cluster, err := client.New(config, client.Options{})
	must(err)
	for _, object := range existing {
		must(cluster.Create(context.Background(), object))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	settings := kopf.RunSettings{Config: config, Log: logr.Discard(), Metrics: prometheus.NewRegistry()}
	go func() { ended <- op.Run(ctx, settings) }()
	select {
	case <-op.Ready():
	case err := <-ended:
		panic(err)
	}
	return cluster, func() {
		cancel()
		must(<-ended)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// note returns the object of the examples.
func note(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "note"}, Data: map[string]string{"text": text},
	}
}

// changeText edits the note in the cluster.
func changeText(cluster client.Client, text string) {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"text":"`+text+`"}}`))
	must(cluster.Patch(context.Background(), note(""), patch))
}

// The handler runs once for each new object.
func ExampleSelection_OnCreate() {
	type Change = kopf.Change[*corev1.ConfigMap]

	calls := make(chan string, 1)
	op := kopf.New("notes.example.org")
	kopf.For(op, &corev1.ConfigMap{}).OnCreate("read", func(_ context.Context, c *Change) error {
		calls <- c.Object.Name + ": " + c.Object.Data["text"]
		return nil
	})

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	fmt.Println(<-calls)
	// Output: note: three apples
}

// The handler gets the last-handled configuration in c.Old.
func ExampleSelection_OnUpdate() {
	type Change = kopf.Change[*corev1.ConfigMap]

	created, updated := make(chan bool, 1), make(chan string, 1)
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	notes.OnCreate("read", func(context.Context, *Change) error { created <- true; return nil })
	notes.OnUpdate("compare", func(_ context.Context, c *Change) error {
		updated <- c.Old.Data["text"] + " -> " + c.Object.Data["text"]
		return nil
	})

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	<-created
	changeText(cluster, "four apples")
	fmt.Println(<-updated)
	// Output: three apples -> four apples
}

// A finalizer holds the object until the handler has succeeded.
func ExampleSelection_OnDelete() {
	type Change = kopf.Change[*corev1.ConfigMap]

	created, deleted := make(chan bool, 1), make(chan string, 1)
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	notes.OnCreate("read", func(context.Context, *Change) error { created <- true; return nil })
	notes.OnDelete("release", func(_ context.Context, c *Change) error {
		deleted <- fmt.Sprint(c.Object.Name, ": ", c.Object.Finalizers)
		return nil
	})

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	<-created
	must(cluster.Delete(context.Background(), note("")))
	fmt.Println(<-deleted)
	// Output: note: [notes.example.org/finalizer]
}

// The handler runs for objects that an earlier run of the operator has handled.
func ExampleSelection_OnResume() {
	type Change = kopf.Change[*corev1.ConfigMap]

	calls := make(chan string, 1)
	report := func(_ context.Context, c *Change) error {
		calls <- fmt.Sprint(c.Reason, ": ", c.Object.Data["text"])
		return nil
	}
	newOperator := func() *kopf.Operator {
		op := kopf.New("notes.example.org")
		notes := kopf.For(op, &corev1.ConfigMap{})
		notes.OnCreate("connect", report)
		notes.OnResume("reconnect", report)
		return op
	}

	server := memapi.New()
	_, stop := runAgainst(server, newOperator(), note("three apples"))
	fmt.Println(<-calls)
	stop()
	_, stop = runAgainst(server, newOperator())
	fmt.Println(<-calls)
	stop()
	// Output:
	// create: three apples
	// resume: three apples
}

// The creation adds the field, so it calls the handler, too.
func ExampleSelection_OnField() {
	calls := make(chan string, 2)
	op := kopf.New("notes.example.org")
	kopf.For(op, &corev1.ConfigMap{}).OnField("compare", "data.text",
		func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
			before, after := kopf.FieldChange[string](c)
			calls <- fmt.Sprint(c.Reason, ": ", before != nil, " ", *after)
			return nil
		})

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	fmt.Println(<-calls)
	changeText(cluster, "four apples")
	fmt.Println(<-calls)
	// Output:
	// create: false three apples
	// update: true four apples
}

// One handler brings the outside into the declared state, for several reasons.
func ExampleSelection_On() {
	type Change = kopf.Change[*corev1.ConfigMap]

	calls := make(chan string, 2)
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	notes.On("reconcile", kopf.CreateUpdateResume(), func(_ context.Context, c *Change) error {
		calls <- fmt.Sprint(c.Reason, ": ", c.Object.Data["text"])
		return nil
	}, kopf.Retries(10), kopf.EvenIfDeleted())

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	fmt.Println(<-calls)
	changeText(cluster, "four apples")
	fmt.Println(<-calls)
	// Output:
	// create: three apples
	// update: four apples
}

// The handler runs for each event of the watch. The operator stores nothing on the object.
func ExampleSelection_OnEvent() {
	type WatchEvent = kopf.WatchEvent[*corev1.ConfigMap]

	calls := make(chan string, 3)
	op := kopf.New("notes.example.org")
	kopf.For(op, &corev1.ConfigMap{}).OnEvent("log", func(_ context.Context, e *WatchEvent) error {
		calls <- string(e.Type) + ": " + e.Object.Data["text"]
		return nil
	})

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	fmt.Println(<-calls)
	changeText(cluster, "four apples")
	fmt.Println(<-calls)
	must(cluster.Delete(context.Background(), note("")))
	fmt.Println(<-calls)
	// Output:
	// ADDED: three apples
	// MODIFIED: four apples
	// DELETED: four apples
}

// A daemon runs from the creation to the deletion.
func ExampleSelection_Daemon() {
	type Task = kopf.Task[*corev1.ConfigMap]

	calls := make(chan string, 2)
	op := kopf.New("notes.example.org")
	kopf.For(op, &corev1.ConfigMap{}).Daemon("follow", func(_ context.Context, r *Task) error {
		calls <- "following " + r.Object.Data["text"]
		<-r.Stopping()
		calls <- fmt.Sprint("stopped by a deletion: ", errors.Is(r.StopReason(), kopf.ErrDeleted))
		return nil
	})

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	fmt.Println(<-calls)
	must(cluster.Delete(context.Background(), note("")))
	fmt.Println(<-calls)
	// Output:
	// following three apples
	// stopped by a deletion: true
}

// The function is called again when the interval is over.
func ExampleSelection_Timer() {
	type Task = kopf.Task[*corev1.ConfigMap]

	calls := make(chan string, 100)
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	notes.Timer("check", 10*time.Millisecond, func(_ context.Context, r *Task) error {
		select {
		case calls <- "checking " + r.Object.Data["text"]:
		case <-r.Stopping():
		}
		return nil
	})

	cluster, stop := runInMemory(op)
	defer stop()
	must(cluster.Create(context.Background(), note("three apples")))
	fmt.Println(<-calls)
	fmt.Println(<-calls)
	// Output:
	// checking three apples
	// checking three apples
}

// The condition Ready follows from the outcome of the handlers.
func ExampleSelection_Conditions() {
	op := kopf.New("services.example.org")
	services := kopf.For(op, &corev1.Service{})
	services.Conditions()
	services.OnCreate("expose", func(context.Context, *kopf.Change[*corev1.Service]) error {
		return nil // an error makes Ready False, with its text as the message
	})

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	cluster, stop := runInMemory(op, service)
	defer stop()
	for !meta.IsStatusConditionTrue(service.Status.Conditions, "Ready") {
		time.Sleep(10 * time.Millisecond)
		must(cluster.Get(context.Background(), client.ObjectKeyFromObject(service), service))
	}
	ready := meta.FindStatusCondition(service.Status.Conditions, "Ready")
	fmt.Println(ready.Type, ready.Status)
	// Output: Ready True
}

// Children that Ensure has applied are restored after a deletion by other clients.
func ExampleSelection_Owns() {
	type Change = kopf.Change[*corev1.ConfigMap]

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"}}
	applied := make(chan bool, 1)
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	notes.Owns(&corev1.Secret{})
	notes.OnCreate("login", func(ctx context.Context, c *Change) error {
		err := c.Ensure(ctx, secret.DeepCopy())
		applied <- err == nil
		return err
	})

	cluster, stop := runInMemory(op, note("three apples"))
	defer stop()
	fmt.Println(<-applied)
	must(cluster.Delete(context.Background(), secret))
	for cluster.Get(context.Background(), client.ObjectKeyFromObject(secret), secret) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(secret.OwnerReferences[0].Name)
	// Output:
	// true
	// note
}

// The handler runs for the owner when other clients create, change or delete children.
func ExampleOnChild() {
	type Event = kopf.ChildEvent[*corev1.ConfigMap, *corev1.Secret]

	calls := make(chan string, 2)
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	notes.Owns(&corev1.Secret{})
	kopf.OnChild(notes, "count", func(_ context.Context, e *Event) error {
		calls <- fmt.Sprint(e.Object.Name, ": ", e.Type, " ", e.Child.Name)
		return nil
	})

	owner := note("three apples")
	cluster, stop := runInMemory(op, owner)
	defer stop()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "login",
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		},
	}}
	must(cluster.Create(context.Background(), secret))
	fmt.Println(<-calls)
	must(cluster.Delete(context.Background(), secret))
	fmt.Println(<-calls)
	// Output:
	// note: ADDED login
	// note: DELETED login
}

// When the operator is ready, the index has the entries of all objects.
func ExampleNewIndex() {
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	byText := kopf.NewIndex(notes, "by-text",
		func(_ context.Context, m *corev1.ConfigMap) (map[string]string, error) {
			return map[string]string{m.Data["text"]: m.Name}, nil
		})

	_, stop := runInMemory(op, note("three apples"))
	defer stop()
	fmt.Println(byText.Get("three apples"), byText.Count("four apples"))
	// Output: [note] 0
}

// The value belongs to one object and ends with it.
func ExampleNewMemo() {
	type Change = kopf.Change[*corev1.ConfigMap]

	calls := make(chan int, 2)
	op := kopf.New("notes.example.org")
	notes := kopf.For(op, &corev1.ConfigMap{})
	versions := kopf.NewMemo[int](notes)
	notes.OnField("count", "data.text", func(_ context.Context, c *Change) error {
		count := versions.Of(c.Object)
		*count++
		calls <- *count
		return nil
	})

	cluster, stop := runInMemory(op, note("three apples"))
	defer stop()
	fmt.Println(<-calls)
	changeText(cluster, "four apples")
	fmt.Println(<-calls)
	// Output:
	// 1
	// 2
}
