package facade_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// newManager makes a manager that talks to nobody before it starts.
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

func TestSetupFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		setup  func(t *testing.T) error
		want   string
	}{
		"nil operator": {"it is easy to forget to make one", func(t *testing.T) error {
			var op *facade.Operator
			return op.SetupWithManager(newManager(t, newScheme(t)))
		}, "the operator is nil or empty"},
		"nil manager": {"an error of the project before", func(*testing.T) error {
			return facade.New("test.example.org").SetupWithManager(nil)
		}, `operator "test.example.org": the manager is nil`},
		"operator that is not made": {"its zero value has no name", func(t *testing.T) error {
			return new(facade.Operator).SetupWithManager(newManager(t, newScheme(t)))
		}, "make it with facade.New"},
		"twice": {"handlers would be called twice", func(t *testing.T) error {
			op := one(succeed)
			if err := op.SetupWithManager(newManager(t, newScheme(t))); err != nil {
				t.Fatal(err)
			}
			return op.SetupWithManager(newManager(t, newScheme(t)))
		}, "it was set up already"},
		"two of one name": {"they would take each other's memory for their own", func(t *testing.T) error {
			m := newManager(t, newScheme(t))
			if err := one(succeed).SetupWithManager(m); err != nil {
				t.Fatal(err)
			}
			return one(succeed).SetupWithManager(m)
		}, "with the same annotation prefix"},
		"registered too late": {"the manager must not run without the handler", func(t *testing.T) error {
			m, op := newManager(t, newScheme(t)), one(succeed)
			if err := op.SetupWithManager(m); err != nil {
				t.Fatal(err)
			}
			facade.For(op, &Widget{}).OnUpdate("late", succeed)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return m.Start(ctx)
		}, `OnUpdate("late"): registered after the operator was set up`},
		"scheme that cannot be filled": {"a mistake in an API package", func(t *testing.T) error {
			op := facade.New(
				"test.example.org",
				facade.AddToScheme(func(*runtime.Scheme) error { return errors.New("no types today") }),
			)
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

func TestSetup(t *testing.T) {
	op := facade.New("test.example.org", facade.AddToScheme(addWidgets))
	facade.For(op, &Widget{}).OnCreate("fn", succeed)
	scheme := runtime.NewScheme()
	if err := op.SetupWithManager(newManager(t, scheme)); err != nil {
		t.Fatal(err)
	}
	if !scheme.Recognizes(widgets.WithKind("Widget")) {
		t.Error("the manager's clients do not know the types of AddToScheme")
	}
}

func TestSetupAfterMistakesAreCorrected(t *testing.T) {
	op := one(succeed)
	if err := op.SetupWithManager(newManager(t, runtime.NewScheme())); err == nil {
		t.Fatal("the scheme does not know the type")
	}
	if err := op.SetupWithManager(newManager(t, newScheme(t))); err != nil {
		t.Errorf("a set-up that failed is none: %v", err)
	}
}

func TestOperators(t *testing.T) {
	own := reconcilers.Options{
		Name: "test.example.org", Prefix: "test.example.org", Finalizer: "test.example.org/finalizer",
		BoundTo:  "test.example.org/handled-uid",
		Diffbase: diffbase.Annotations{Prefix: "test.example.org", WithoutV1: true},
		Progress: progress.Annotations{Prefix: "test.example.org", WithoutV1: true}, CompactSubs: true,
		Digests: reconcilers.Digests{Limit: 100 * 1024, Secrets: true},
	}
	with := func(change func(*reconcilers.Options)) reconcilers.Options {
		o := own
		change(&o)
		return o
	}
	cases := map[string]struct {
		reason string
		opts   []facade.OperatorOption
		want   reconcilers.Options
	}{
		"defaults": {"all memory is under the name", nil, own},
		"as Kopf": {"all of it is where Kopf's operators have it, and nothing else is written",
			[]facade.OperatorOption{facade.AsKopf()},
			reconcilers.Options{
				Name: "test.example.org", Prefix: "kopf.zalando.org", Finalizer: "kopf.zalando.org/KopfFinalizerMarker",
				Diffbase: diffbase.Annotations{}, Progress: progress.Smart{},
			}},
		"namespaces": {"one given twice would be handled twice",
			[]facade.OperatorOption{facade.InNamespaces("b", "a", "b")},
			with(func(o *reconcilers.Options) { o.Namespaces = []string{"a", "b"} })},
		"numbers": {"they go to the engine as they are", []facade.OperatorOption{
			facade.Workers(3), facade.DefaultBackoff(time.Second), facade.Checkpoint(time.Minute),
			facade.Lifecycle(facade.ASAP), facade.ErrorDelays(time.Hour),
			facade.APIBackoffs(time.Second, time.Minute), facade.ObeyRetryAfter(),
			facade.MostDaemons(5), facade.MostTicks(6), facade.DefaultCancelPolling(time.Hour),
		},
			with(func(o *reconcilers.Options) {
				o.Workers, o.Backoff, o.Checkpoint, o.Lifecycle = 3, time.Second, time.Minute, facade.ASAP
				o.ErrorDelays = []time.Duration{time.Hour}
				o.APIBackoffs, o.ObeyRetryAfter = []time.Duration{time.Second, time.Minute}, true
				o.Daemons, o.Ticks, o.CancelPolling = 5, 6, time.Hour
			})},
		"no error delays": {"they are none, not the default ones", []facade.OperatorOption{facade.ErrorDelays()},
			with(func(o *reconcilers.Options) { o.ErrorDelays = []time.Duration{} })},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := facade.New("test.example.org", c.opts...)
			if _, err := facade.Plan(op, newScheme(t)); err != nil {
				t.Fatal(err)
			}
			got := facade.EngineOptions(op)
			got.Metrics = nil
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

func TestWrongOperators(t *testing.T) {
	cases := map[string]struct {
		reason string
		make   func() *facade.Operator
		want   []string
	}{
		"no name": {"there is nothing to keep the memory under",
			func() *facade.Operator { return facade.New("") },
			[]string{`invalid operator name: invalid annotation prefix ""`}},
		"no domain name": {"it stands in annotations and finalizers",
			func() *facade.Operator { return facade.New("My Operator") }, []string{"use a domain name"}},
		"long name": {"events of such a source are refused",
			func() *facade.Operator { return facade.New(strings.Repeat("a.", 31) + "aa") },
			[]string{"more than 63 characters"}},
		"wrong options": {"each names itself and its value",
			func() *facade.Operator {
				return facade.New("test.example.org", facade.Workers(0), facade.DefaultBackoff(0),
					facade.ErrorDelays(0), facade.APIBackoffs(0), facade.MostDaemons(0), facade.MostTicks(-1),
					facade.DefaultCancelPolling(0), facade.Checkpoint(0), facade.Lifecycle(99),
					facade.InNamespaces("Team_A"),
					facade.InNamespaces(), facade.AddToScheme(nil), nil)
			},
			[]string{"13 mistakes", "MostDaemons(0)", "MostTicks(-1)", "DefaultCancelPolling(0s)",
				"ErrorDelays: the delay 0s", "APIBackoffs: the delay 0s", "Checkpoint(0s)", "Lifecycle(99)",
				"Workers(0)", "DefaultBackoff(0s)", `InNamespaces: "Team_A" is not the name of a namespace`,
				"InNamespaces: no namespaces", "AddToScheme: a function is nil", "<nil> is no option"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := facade.Plan(c.make(), newScheme(t))
			if err == nil {
				t.Fatalf("no error, but: %s", c.reason)
			}
			for _, want := range append(c.want, "facade/setup_test.go:") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s\nwant %q in the error, got: %v", c.reason, want, err)
				}
			}
		})
	}
}
