package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// mark is for handlers of all verbs and all kinds.
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

// Functions that several handlers share take a Call.
func ExampleCall() {
	op := kopf.New("addresses.example.org")
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.OnCreate("mark", func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		mark(c, "new")
		return nil
	})
	maps.Timer("remark", time.Hour, func(_ context.Context, r *kopf.Task[*corev1.ConfigMap]) error {
		mark(r, "old")
		return nil
	})
}

// A handler that waits for something looks at the newest state: c.Object stays as it was.
func ExampleChange_Latest() {
	op := kopf.New("addresses.example.org")
	wait := func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		for c.Latest().Data["address"] == "" {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Second):
			}
		}
		return nil
	}
	kopf.For(op, &corev1.ConfigMap{}).OnCreate("wait", wait, kopf.Timeout(time.Minute))
}

// A function that may fail writes all that it does, or nothing.
func ExampleChange_TryPatch() {
	type Change = kopf.Change[*corev1.ConfigMap]

	op := kopf.New("addresses.example.org")
	kopf.For(op, &corev1.ConfigMap{}).OnUpdate("claim", func(_ context.Context, c *Change) error {
		c.TryPatch(func(m *corev1.ConfigMap) error {
			m.Labels = map[string]string{"claimed-by": c.ID}
			if by := m.Data["claimed-by"]; by != "" && by != c.ID {
				return kopf.Permanent(fmt.Errorf("it is claimed by %s already", by))
			}
			return nil
		})
		return nil
	})
}

// Objects without a Go type are read and changed by paths.
func ExampleUnstructured() {
	type Change = kopf.Change[*kopf.Unstructured]

	op := kopf.New("databases.example.org")
	kopf.ForResource(op, "databases").OnCreate("provision", func(ctx context.Context, c *Change) error {
		size, err := kopf.GetField[int](c.Object, "spec.size")
		switch {
		case errors.Is(err, kopf.ErrNoValue):
			size = 1
		case err != nil:
			return kopf.Permanent(err)
		}
		team := kopf.GetFieldOr(c.Object, `metadata.labels."example.org/team"`, "nobody")
		log.FromContext(ctx).Info("Provisioning", "size", size, "team", team)
		c.TryPatch(func(o *kopf.Unstructured) error { return kopf.SetField(o, "status.size", size) })
		return nil
	})
}

// database is an object for the examples of paths.
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
