package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

var errQuota = errors.New("no quota is left")

// allocate stands for the purpose of the operator.
func allocate(context.Context, string) (string, error) { return "", errQuota }

// An operator consists of a name, selections of objects, and functions that are registered with verbs.
func Example() {
	type Change = kopf.Change[*corev1.ConfigMap]

	op := kopf.New("addresses.example.org")
	wanted := kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("address=wanted")

	wanted.OnCreate("allocate", func(ctx context.Context, c *Change) error {
		address, err := allocate(ctx, c.Object.Name)
		switch {
		case errors.Is(err, errQuota):
			return kopf.Temporary(err, time.Minute)
		case err != nil:
			return kopf.Permanent(err)
		}
		c.Patch(func(m *corev1.ConfigMap) { m.Data = map[string]string{"address": address} })
		return nil
	}, kopf.Timeout(time.Hour))

	kopf.Main(op)
}

// A project that has a manager keeps it.
func ExampleOperator_SetupWithManager() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		panic(err)
	}

	op := kopf.New("addresses.example.org")
	kopf.For(op, &corev1.ConfigMap{}).OnUpdate("notify", notify)
	if err := op.SetupWithManager(mgr); err != nil {
		panic(err)
	}

	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

// Controllers and checks besides the handlers are added to the manager, also if Main creates it.
func ExampleOperator_WithManager() {
	op := kopf.New("addresses.example.org")
	op.WithManager(func(mgr ctrl.Manager) error {
		if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
			return err
		}
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(&pods{})
	})
	kopf.For(op, &corev1.ConfigMap{}).OnUpdate("notify", notify)
	kopf.Main(op)
}

// pods is a controller written with controller-runtime.
type pods struct{}

func (*pods) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }

func notify(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return nil }

// Handlers can share options and override some of them.
func ExampleJoinOptions() {
	type Change = kopf.Change[*corev1.ConfigMap]

	fail := func(context.Context, *Change) error { return errors.New("no connection") }
	patient := kopf.JoinOptions(kopf.Retries(10), kopf.Backoff(time.Hour))
	create := facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(), fail, patient)
	fmt.Println(create.Final, create.Delay)
	create = facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(), fail, patient, kopf.Retries(1))
	fmt.Println(create.Final, create.Delay)
	// Output:
	// false 1h0m0s
	// true 0s
}
