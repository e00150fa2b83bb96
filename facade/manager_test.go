package kopf_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestWithManager shows that the functions get the manager in order and can use its connection, under SetupWithManager
// and under Main.
func TestWithManager(t *testing.T) {
	var called []string
	add := func(name string) func(ctrl.Manager) error {
		return func(m ctrl.Manager) error {
			called = append(called, name+" "+m.GetConfig().Host)
			return m.AddHealthzCheck(name, nil)
		}
	}
	prepare := func() *kopf.Operator {
		op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
		op.WithManager(add("first"))
		kopf.For(op, &Widget{}).OnCreate("fn", succeed)
		op.WithManager(add("second"))
		called = nil
		return op
	}
	want := []string{"first http://127.0.0.1:1", "second http://127.0.0.1:1"}
	if err := prepare().SetupWithManager(newManager(t, newScheme(t))); err != nil || !slices.Equal(called, want) {
		t.Errorf("want %q, got %q, error %v", want, called, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	program := prepare()
	program.WithManager(func(ctrl.Manager) error { cancel(); return nil })
	cmd := program.Command()
	cmd.SetArgs([]string{"-A", "-q", "--kubeconfig", unreachableKubeconfig})
	if err := cmd.ExecuteContext(ctx); err != nil || !slices.Equal(called, want) {
		t.Errorf("as a program: want %q, got %q, error %v", want, called, err)
	}
}

// TestWithManagerFails shows the errors of functions of WithManager, and of wrong calls.
func TestWithManagerFails(t *testing.T) {
	broken := func(ctrl.Manager) error { return errors.New("no webhooks today") }
	never := func(ctrl.Manager) error { t.Error("the function must not be called"); return nil }
	cases := map[string]struct {
		reason string
		setup  func(t *testing.T, op *kopf.Operator, m ctrl.Manager) error
		want   string
	}{
		"error": {"an error names the line of the registration",
			func(_ *testing.T, op *kopf.Operator, m ctrl.Manager) error {
				op.WithManager(broken)
				return op.SetupWithManager(m)
			}, "facade/manager_test.go:"},
		"error itself": {"an error has the text of the function's error",
			func(_ *testing.T, op *kopf.Operator, m ctrl.Manager) error {
				op.WithManager(broken)
				return op.SetupWithManager(m)
			}, "WithManager: no webhooks today"},
		"nil": {"a nil function is an error", func(_ *testing.T, op *kopf.Operator, m ctrl.Manager) error {
			op.WithManager(nil)
			return op.SetupWithManager(m)
		}, "WithManager: the function is nil"},
		"nil operator": {"a function for a nil operator is an error of the next set-up",
			func(_ *testing.T, op *kopf.Operator, m ctrl.Manager) error {
				var none *kopf.Operator
				none.WithManager(never)
				return op.SetupWithManager(m)
			}, "the operator is nil"},
		"mistakes elsewhere": {
			"functions are not called if a registration is invalid",
			func(_ *testing.T, op *kopf.Operator, m ctrl.Manager) error {
				op.WithManager(never)
				kopf.For(op, &Widget{}).OnCreate("", succeed)
				return op.SetupWithManager(m)
			}, "OnCreate",
		},
		"too late": {"a function registered after the set-up is an error of the start",
			func(t *testing.T, op *kopf.Operator, m ctrl.Manager) error {
				if err := op.SetupWithManager(m); err != nil {
					t.Fatal(err)
				}
				op.WithManager(never)
				return m.Start(t.Context())
			}, "WithManager: called after the operator was set up"},
		"handlers in it": {"a handler registered by a function is an error of the start",
			func(t *testing.T, op *kopf.Operator, m ctrl.Manager) error {
				op.WithManager(func(ctrl.Manager) error {
					kopf.For(op, &Widget{}).OnUpdate("late", succeed)
					return nil
				})
				if err := op.SetupWithManager(m); err != nil {
					t.Fatal(err)
				}
				return m.Start(t.Context())
			}, `OnUpdate("late"): registered after the operator was set up`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.setup(t, newCreationOperator(succeed), newManager(t, newScheme(t)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\nwant %q in the error, got: %v", c.reason, c.want, err)
			}
		})
	}
}

// TestSetupAfterAFunctionFailed shows that an operator can be set up after a function of WithManager has failed.
func TestSetupAfterAFunctionFailed(t *testing.T) {
	op, fail := newCreationOperator(succeed), true
	op.WithManager(func(ctrl.Manager) error {
		if fail {
			return errors.New("not yet")
		}
		return nil
	})
	if err := op.SetupWithManager(newManager(t, newScheme(t))); err == nil {
		t.Fatal("an error of a function must fail the set-up")
	}
	fail = false
	if err := op.SetupWithManager(newManager(t, newScheme(t))); err != nil {
		t.Errorf("a set-up after a failed one must succeed: %v", err)
	}
}
