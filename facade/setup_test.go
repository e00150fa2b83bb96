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

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
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
			var op *kopf.Operator
			return op.SetupWithManager(newManager(t, newScheme(t)))
		}, "the operator is nil or empty"},
		"nil manager": {"an error of the project before", func(*testing.T) error {
			return kopf.New("test.example.org").SetupWithManager(nil)
		}, `operator "test.example.org": the manager is nil`},
		"operator that is not made": {"its zero value has no name", func(t *testing.T) error {
			return new(kopf.Operator).SetupWithManager(newManager(t, newScheme(t)))
		}, "make it with kopf.New"},
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
			kopf.For(op, &Widget{}).OnUpdate("late", succeed)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return m.Start(ctx)
		}, `OnUpdate("late"): registered after the operator was set up`},
		"scheme that cannot be filled": {"a mistake in an API package", func(t *testing.T) error {
			op := kopf.New(
				"test.example.org",
				kopf.AddToScheme(func(*runtime.Scheme) error { return errors.New("no types today") }),
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
	op := kopf.New("test.example.org", kopf.AddToScheme(addWidgets))
	kopf.For(op, &Widget{}).OnCreate("fn", succeed)
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
		opts   []kopf.OperatorOption
		want   reconcilers.Options
	}{
		"defaults": {"all memory is under the name", nil, own},
		"as Kopf": {"all of it is where Kopf's operators have it, and nothing else is written",
			[]kopf.OperatorOption{kopf.AsKopf()},
			reconcilers.Options{
				Name: "test.example.org", Prefix: "kopf.zalando.org", Finalizer: "kopf.zalando.org/KopfFinalizerMarker",
				Diffbase: diffbase.Annotations{}, Progress: progress.Smart{},
			}},
		"namespaces": {"one given twice would be handled twice",
			[]kopf.OperatorOption{kopf.InNamespaces("b", "a", "b")},
			with(func(o *reconcilers.Options) { o.Namespaces = []string{"a", "b"} })},
		"numbers": {"they go to the engine as they are", []kopf.OperatorOption{
			kopf.Workers(3), kopf.DefaultBackoff(time.Second), kopf.Checkpoint(time.Minute),
			kopf.Lifecycle(kopf.ASAP), kopf.ErrorDelays(time.Hour),
			kopf.APIBackoffs(time.Second, time.Minute), kopf.ObeyRetryAfter(),
			kopf.MaxConcurrentDaemons(5), kopf.MaxConcurrentTicks(6), kopf.DefaultCancelPolling(time.Hour),
		},
			with(func(o *reconcilers.Options) {
				o.Workers, o.Backoff, o.Checkpoint, o.Lifecycle = 3, time.Second, time.Minute, kopf.ASAP
				o.ErrorDelays = []time.Duration{time.Hour}
				o.APIBackoffs, o.ObeyRetryAfter = []time.Duration{time.Second, time.Minute}, true
				o.Daemons, o.Ticks, o.CancelPolling = 5, 6, time.Hour
			})},
		"no error delays": {"they are none, not the default ones", []kopf.OperatorOption{kopf.ErrorDelays()},
			with(func(o *reconcilers.Options) { o.ErrorDelays = []time.Duration{} })},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", c.opts...)
			if _, err := kopf.Plan(op, newScheme(t)); err != nil {
				t.Fatal(err)
			}
			got := kopf.EngineOptions(op)
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
		make   func() *kopf.Operator
		want   []string
	}{
		"no name": {"there is nothing to keep the memory under",
			func() *kopf.Operator { return kopf.New("") },
			[]string{`invalid operator name: invalid annotation prefix ""`}},
		"no domain name": {"it stands in annotations and finalizers",
			func() *kopf.Operator { return kopf.New("My Operator") }, []string{"use a domain name"}},
		"long name": {"events of such a source are refused",
			func() *kopf.Operator { return kopf.New(strings.Repeat("a.", 31) + "aa") },
			[]string{"more than 63 characters"}},
		"wrong options": {"each names itself and its value",
			func() *kopf.Operator {
				return kopf.New("test.example.org", kopf.Workers(0), kopf.DefaultBackoff(0),
					kopf.ErrorDelays(0), kopf.APIBackoffs(0), kopf.MaxConcurrentDaemons(0), kopf.MaxConcurrentTicks(-1),
					kopf.DefaultCancelPolling(0), kopf.Checkpoint(0), kopf.Lifecycle(99),
					kopf.InNamespaces("Team_A"),
					kopf.InNamespaces(), kopf.AddToScheme(nil), nil)
			},
			[]string{"13 mistakes", "MaxConcurrentDaemons(0)", "MaxConcurrentTicks(-1)", "DefaultCancelPolling(0s)",
				"ErrorDelays: the delay 0s", "APIBackoffs: the delay 0s", "Checkpoint(0s)", "Lifecycle(99)",
				"Workers(0)", "DefaultBackoff(0s)", `InNamespaces: "Team_A" is not the name of a namespace`,
				"InNamespaces: no namespaces", "AddToScheme: a function is nil", "<nil> is no option"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := kopf.Plan(c.make(), newScheme(t))
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
