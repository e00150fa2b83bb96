package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// mark works in handlers of all verbs and kinds of objects.
func mark[T client.Object](c kopf.Call[T], phase string) {
	c.Patch(func(object T) {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["phase"] = phase
		object.SetLabels(labels)
	})
}

// A function that handlers of several families share takes a Call.
func ExampleCall() {
	create := func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		mark(c, "new")
		return nil
	}
	check := func(_ context.Context, r *kopf.Task[*corev1.ConfigMap]) error {
		mark(r, "old")
		return nil
	}

	created := facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(), create)
	checked := facadetest.NewTask(&corev1.ConfigMap{}).Call(context.Background(), check)
	fmt.Println(created.Object.Labels, checked.Object.Labels)
	// Output: map[phase:new] map[phase:old]
}

// Patch changes c.Object immediately. Latest returns the state of the cluster.
func ExampleChange_Latest() {
	provision := func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		c.Patch(func(m *corev1.ConfigMap) { m.Data = map[string]string{"address": "10.0.0.1"} })
		fmt.Println(c.Object.Data, c.Latest().Data)
		if err := c.Flush(ctx); err != nil {
			return err
		}
		fmt.Println(c.Latest().Data)
		return nil
	}

	got := facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(), provision)
	fmt.Println(got.Err)
	// Output:
	// map[address:10.0.0.1] map[]
	// map[address:10.0.0.1]
	// <nil>
}

// If the function fails, nothing is written.
func ExampleChange_TryPatch() {
	claim := func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		c.TryPatch(func(m *corev1.ConfigMap) error {
			m.Labels = map[string]string{"claimed": "yes"}
			if by := m.Data["claimed-by"]; by != "" {
				return kopf.Permanent(fmt.Errorf("it is claimed by %s", by))
			}
			return nil
		})
		return nil
	}

	for _, data := range []map[string]string{nil, {"claimed-by": "ann"}} {
		got := facadetest.NewChange(&corev1.ConfigMap{Data: data}).Call(context.Background(), claim)
		fmt.Println(got.Err, got.Final, got.Object.Labels)
	}
	// Output:
	// <nil> true map[claimed:yes]
	// patching object object by handler "handler": it is claimed by ann true map[]
}

// Fields of objects without a Go type are read and changed by path.
func ExampleUnstructured() {
	provision := func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		size, err := kopf.GetField[int](c.Object, "spec.size")
		switch {
		case errors.Is(err, kopf.ErrNoValue):
			size = 1
		case err != nil:
			return kopf.Permanent(err)
		}
		kopf.PatchField(c, "status.size", size)
		return nil
	}

	db := &kopf.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Database"}}
	got := facadetest.NewChange(db).Call(context.Background(), provision)
	fmt.Println(got.Err, got.Object.Object["status"])
	// Output: <nil> map[size:1]
}

// database returns an object for the examples of paths.
func database() *kopf.Unstructured {
	return &kopf.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "orders"},
		"spec": map[string]any{
			"size": int64(3), "backup": map[string]any{"every": "24h"},
			"replicas": []any{map[string]any{"zone": "a"}, map[string]any{"zone": "b"}},
		},
	}}
}

func ExampleGetField() {
	type replica struct {
		Zone string `json:"zone"`
	}
	db := database()
	size, _ := kopf.GetField[int](db, "spec.size")
	every, _ := kopf.GetField[time.Duration](db, "spec.backup.every")
	replicas, _ := kopf.GetField[[]replica](db, "spec.replicas")
	fmt.Println(size, every, replicas)

	_, err := kopf.GetField[int](db, "spec.port")
	fmt.Println(errors.Is(err, kopf.ErrNoValue))
	_, err = kopf.GetField[string](db, "spec.size")
	fmt.Println(err)
	// Output:
	// 3 24h0m0s [{a} {b}]
	// true
	// reading spec.size of object orders as string: it is the number 3
}

func ExampleGetFieldOr() {
	fmt.Println(kopf.GetFieldOr(database(), "spec.size", 1), kopf.GetFieldOr(database(), "spec.port", 5432))
	// Output: 3 5432
}

func ExampleSetField() {
	db := database()
	fmt.Println(kopf.SetField(db, "status.phase", "Ready"))
	fmt.Println(kopf.SetField(db, "spec.size.unit", "GiB"))
	fmt.Println(db.Object["status"])
	// Output:
	// <nil>
	// setting spec.size.unit of object orders: spec.size is the number 3: it has no keys
	// map[phase:Ready]
}

func ExampleRemoveField() {
	db := database()
	fmt.Println(kopf.RemoveField(db, "spec.replicas"), kopf.RemoveField(db, "spec.backup.every"))
	fmt.Println(db.Object["spec"])
	// Output:
	// <nil> <nil>
	// map[backup:map[] size:3]
}
