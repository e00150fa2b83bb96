package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// newManager returns a manager that sends no requests before it starts.
func newManager(t *testing.T, scheme *runtime.Scheme) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSetupFails shows the errors of SetupWithManager.
func TestSetupFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		setup  func(t *testing.T) error
		want   string
	}{
		"nil operator": {"a nil operator is an error", func(t *testing.T) error {
			var op *kopf.Operator
			return op.SetupWithManager(newManager(t, newScheme(t)))
		}, "the operator is nil or empty"},
		"nil manager": {"a nil manager is an error", func(*testing.T) error {
			return kopf.New("test.example.org").SetupWithManager(nil)
		}, `operator "test.example.org": the manager is nil`},
		"operator that is not made": {"the zero Operator is an error", func(t *testing.T) error {
			return new(kopf.Operator).SetupWithManager(newManager(t, newScheme(t)))
		}, "make it with kopf.New"},
		"twice": {"a second set-up is an error", func(t *testing.T) error {
			op := newCreationOperator(succeed)
			if err := op.SetupWithManager(newManager(t, newScheme(t))); err != nil {
				t.Fatal(err)
			}
			return op.SetupWithManager(newManager(t, newScheme(t)))
		}, "it was set up already"},
		"two of one name": {"two operators of one name in one manager are an error", func(t *testing.T) error {
			m := newManager(t, newScheme(t))
			if err := newCreationOperator(succeed).SetupWithManager(m); err != nil {
				t.Fatal(err)
			}
			return newCreationOperator(succeed).SetupWithManager(m)
		}, "with the same annotation prefix"},
		"registered too late": {"a registration after the set-up is an error of the start", func(t *testing.T) error {
			m, op := newManager(t, newScheme(t)), newCreationOperator(succeed)
			if err := op.SetupWithManager(m); err != nil {
				t.Fatal(err)
			}
			kopf.For(op, &Widget{}).OnUpdate("late", succeed)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return m.Start(ctx)
		}, `OnUpdate("late"): registered after the operator was set up`},
		"scheme that cannot be filled": {"an error of AddToScheme is an error of the set-up", func(t *testing.T) error {
			op := kopf.New("test.example.org", kopf.Settings{
				AddToScheme: runtime.SchemeBuilder{func(*runtime.Scheme) error { return errors.New("no types today") }},
			})
			return op.SetupWithManager(newManager(t, newScheme(t)))
		}, "adding types to the scheme: no types today"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.setup(t)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\nwant %q in the error, got: %v", c.reason, c.want, err)
			}
		})
	}
}

// TestSetup shows that the set-up adds the types of AddToScheme to the manager's scheme.
func TestSetup(t *testing.T) {
	op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
	kopf.For(op, &Widget{}).OnCreate("fn", succeed)
	scheme := runtime.NewScheme()
	if err := op.SetupWithManager(newManager(t, scheme)); err != nil {
		t.Fatal(err)
	}
	if !scheme.Recognizes(widgets.WithKind("Widget")) {
		t.Error("the manager's scheme must have the types of AddToScheme")
	}
}

// TestSetupAfterMistakesAreCorrected shows that an operator can be set up after a set-up that failed.
func TestSetupAfterMistakesAreCorrected(t *testing.T) {
	op := newCreationOperator(succeed)
	if err := op.SetupWithManager(newManager(t, runtime.NewScheme())); err == nil {
		t.Fatal("a type that the scheme does not have must be an error")
	}
	if err := op.SetupWithManager(newManager(t, newScheme(t))); err != nil {
		t.Errorf("a set-up after a failed one must succeed: %v", err)
	}
}

// TestWrongOperators shows that wrong arguments of kopf.New are errors of the set-up.
func TestWrongOperators(t *testing.T) {
	cases := map[string]struct {
		reason string
		make   func() *kopf.Operator
		want   []string
	}{
		"no name": {"an empty name is an error",
			func() *kopf.Operator { return kopf.New("") },
			[]string{`invalid operator name: invalid annotation prefix ""`}},
		"no domain name": {"a name that is not a domain name is an error",
			func() *kopf.Operator { return kopf.New("My Operator") }, []string{"use a domain name"}},
		"long name": {"a name of more than 63 characters is an error",
			func() *kopf.Operator { return kopf.New(strings.Repeat("a.", 31) + "aa") },
			[]string{"more than 63 characters"}},
		"two settings": {"two Settings are an error",
			func() *kopf.Operator { return kopf.New("test.example.org", kopf.AsKopf(), kopf.Settings{}) },
			[]string{"kopf.New: 2 Settings are given: set all fields in one of them"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := kopf.Plan(c.make(), newScheme(t))
			if err == nil {
				t.Fatalf("want an error: %s", c.reason)
			}
			for _, want := range append(c.want, "facade/setup_test.go:") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s\nwant %q in the error, got: %v", c.reason, want, err)
				}
			}
		})
	}
}
