package reconcilers_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// newManager makes a manager that talks to nobody before it starts.
func newManager(t *testing.T) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: runtime.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// operator is one by its name and prefix, for kinds such as "Gadget" and names such as "gadgets".
func operator(name, prefix string, kinds ...string) reconcilers.Options {
	o := reconcilers.Options{Settings: reconcilers.Settings{Name: name, Prefix: prefix}}
	for _, kind := range kinds {
		selector := discovery.OfKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind})
		if strings.ToLower(kind) == kind {
			selector.Kind, selector.Name = "", kind
		}
		o.Registrations = append(
			o.Registrations, reconcilers.Registration{Selector: selector, Handler: &handlers.Handler{ID: "h"}},
		)
	}
	return o
}

func storing(o reconcilers.Options, kept diffbase.Storage) reconcilers.Options {
	o.Diffbase = kept
	return o
}

func within(o reconcilers.Options, texts ...string) reconcilers.Options {
	o.Namespaces = named(texts...)
	return o
}

func TestTwoOperatorsOfOneManager(t *testing.T) {
	const shared = "kopf.zalando.org"
	tests := map[string]struct {
		reason        string
		first, second reconcilers.Options
		want          string
	}{
		"SameKind": {
			"they would take each other's memory for their own", operator("one", shared, "Gadget"), operator(
				"two", shared, "Widget", "Gadget",
			),
			`operator "two" cannot handle example.org/v1 Gadget: operator "one" of this process does already, with ` +
				`the same annotation prefix "kopf.zalando.org"`,
		},
		"SameKindBySpelling": {
			"it makes no difference how the kind is spelled", operator("one", shared, "Policy"), operator(
				"two", shared, "policies",
			),
			`cannot handle example.org/v1 policies`,
		},
		"SameName": {
			"nor whether the operators have one name as well", operator(
				"one", shared, "gadgets",
			), operator("one", shared, "gadgets"),
			`give one of them another name`,
		},
		"SameNameOtherKind": {
			"checks are known by the name", operator("one", shared, "Gadget"), operator("one", shared, "Widget"),
			`another operator of this manager has the name "one", and the health checks of that name`,
		},
		"OtherPrefix": {
			"each has its own memory", operator("one", "one", "Gadget"), operator("two", "two", "Gadget"), "",
		},
		"OtherPrefixSamePlace": {
			"one place has room for one memory", storing(operator("one", "one", "Gadget"), diffbase.Status{}), storing(
				operator("two", "two", "Gadget"),
				diffbase.Multi{diffbase.Annotations{Prefix: "two"}, diffbase.Status{}},
			),
			"its memory at the same place, /status/kopf/last-handled-configuration",
		},
		"OtherPlace": {
			"each has its own memory", storing(operator("one", "one", "Gadget"), diffbase.Status{}), storing(
				operator("two", "two", "Gadget"), diffbase.Status{Name: "two"},
			), "",
		},
		"OtherKind": {
			"the memories are on different objects", operator(
				"one", shared, "Gadget",
			), operator("two", shared, "Widget"), "",
		},
		"OtherNamespaces": {
			"the objects are others", within(operator("one", shared, "Gadget"), "a", "b"), within(
				operator("two", shared, "Gadget"), "c",
			), "",
		},
		"CommonNamespace": {
			"some objects are the same", within(operator("one", shared, "Gadget"), "a", "b"), within(
				operator("two", shared, "Gadget"), "c", "b",
			), `cannot handle example.org/v1 Gadget`,
		},
		"NamespacesByPattern": {
			"nobody knows what it matches", within(operator("one", shared, "Gadget"), "a"), within(
				operator("two", shared, "Gadget"), "!a",
			), `cannot handle example.org/v1 Gadget`,
		},
		"OneInAllNamespaces": {
			"these are among them", within(operator("one", shared, "Gadget"), "a"), operator("two", shared, "Gadget"),
			`cannot handle example.org/v1 Gadget`,
		},
		"OtherInAllNamespaces": {
			"so they are the other way around", operator("one", shared, "Gadget"), within(
				operator("two", shared, "Gadget"), "a",
			), `cannot handle example.org/v1 Gadget`,
		},
		"OtherNamespacesSamePlace": {
			"kinds without namespaces would meet there", within(
				storing(operator("one", "one", "Gadget"), diffbase.Status{}), "a",
			), within(storing(operator("two", "two", "Gadget"), diffbase.Status{}), "b"),
			"its memory at the same place, /status/kopf/last-handled-configuration",
		},
		"ManyHandlersOfOneKind": {
			"an operator is not in its own way", operator(
				"one", shared, "Gadget", "gadgets", "Gadget",
			), operator("two", shared, "Widget", "Widget"), "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			if err := reconcilers.SetupWithManager(m, tc.first); err != nil {
				t.Fatal(err)
			}
			err := reconcilers.SetupWithManager(m, tc.second)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestOneOperatorInTwoManagers(t *testing.T) {
	for range 2 {
		if err := reconcilers.SetupWithManager(newManager(t), operator("one", "one", "Gadget")); err != nil {
			t.Errorf("managers may be for two clusters, or one after the other: %v", err)
		}
	}
}

func TestARefusedOperatorLeavesNothing(t *testing.T) {
	m := newManager(t)
	for _, step := range []struct {
		operator reconcilers.Options
		refused  bool
	}{
		{operator("one", "p", "Gadget"), false},
		{operator("two", "p", "Widget", "Gadget"), true},
		{operator("three", "p", "Widget"), false},
	} {
		if err := reconcilers.SetupWithManager(m, step.operator); (err != nil) != step.refused {
			t.Errorf("operator %q: %v", step.operator.Name, err)
		}
	}
}

// In namespaces of their own, two operators of one prefix handle one kind beside each other, in one manager.
func TestTwoOperatorsInNamespacesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		for _, namespace := range []string{"a", "b"} {
			o := p.object("ConfigMap", "c")
			o.SetNamespace(namespace)
			if err := p.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		m := managerOn(t, server, logr.Discard())
		var first, second atomic.Int64
		o := reconcilers.Options{Namespaces: named("b")}
		complete(&o, to(t, "configmaps", counting("h", cause.Create, &second)))
		o.Name = "second"
		if err := reconcilers.SetupWithManager(m, o); err != nil {
			t.Fatal(err)
		}
		stop := operateIn(t, m, reconcilers.Options{Namespaces: named("a")},
			to(t, "configmaps", counting("h", cause.Create, &first)))
		time.Sleep(time.Minute)
		stop()
		if first.Load() != 1 || second.Load() != 1 {
			t.Errorf("the one has handled %d objects, the other one %d, want 1 each", first.Load(), second.Load())
		}
	})
}
