package reconcilers_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// newManager returns a manager that sends no requests before it is started.
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

// operator returns options with a name and a prefix, for kinds such as "Gadget" and plural names such as "gadgets".
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

func withDiffbase(o reconcilers.Options, kept diffbase.Storage) reconcilers.Options {
	o.Diffbase = kept
	return o
}

func withNamespaces(o reconcilers.Options, texts ...string) reconcilers.Options {
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
			"operators with the same prefix would overwrite each other's records", operator("one", shared, "Gadget"),
			operator(
				"two", shared, "Widget", "Gadget",
			),
			`operator "two" cannot handle example.org/v1 Gadget: operator "one" of this process does already, with ` +
				`the same annotation prefix "kopf.zalando.org"`,
		},
		"SameKindBySpelling": {
			"the spelling of the kind does not matter", operator("one", shared, "Policy"), operator(
				"two", shared, "policies",
			),
			`cannot handle example.org/v1 policies`,
		},
		"SameName": {
			"operators with the same name and kind are an error", operator(
				"one", shared, "gadgets",
			), operator("one", shared, "gadgets"),
			`give one of them another name`,
		},
		"SameNameOtherKind": {
			"health checks are named after the operator, so a second one of the name is an error",
			operator("one", shared, "Gadget"), operator("one", shared, "Widget"),
			`another operator of this manager has the name "one", and the health checks of that name`,
		},
		"OtherPrefix": {
			"operators with different prefixes can handle the same kind", operator("one", "one", "Gadget"),
			operator("two", "two", "Gadget"), "",
		},
		"OtherPrefixSamePlace": {
			"two operators must not store configurations in the same field",
			withDiffbase(operator("one", "one", "Gadget"), diffbase.Status{}), withDiffbase(
				operator("two", "two", "Gadget"),
				diffbase.Multi{diffbase.Annotations{Prefix: "two"}, diffbase.Status{}},
			),
			"its memory at the same place, /status/kopf/last-handled-configuration",
		},
		"OtherPlace": {
			"operators with different fields can handle the same kind",
			withDiffbase(operator("one", "one", "Gadget"), diffbase.Status{}), withDiffbase(
				operator("two", "two", "Gadget"), diffbase.Status{Name: "two"},
			), "",
		},
		"OtherKind": {
			"operators can handle different kinds", operator(
				"one", shared, "Gadget",
			), operator("two", shared, "Widget"), "",
		},
		"OtherNamespaces": {
			"operators can handle the same kind in different namespaces",
			withNamespaces(operator("one", shared, "Gadget"), "a", "b"), withNamespaces(
				operator("two", shared, "Gadget"), "c",
			), "",
		},
		"CommonNamespace": {
			"a common namespace is an error", withNamespaces(operator("one", shared, "Gadget"), "a", "b"),
			withNamespaces(
				operator("two", shared, "Gadget"), "c", "b",
			), `cannot handle example.org/v1 Gadget`,
		},
		"NamespacesByPattern": {
			"a pattern may match any namespace, so it is an error",
			withNamespaces(operator("one", shared, "Gadget"), "a"),
			withNamespaces(
				operator("two", shared, "Gadget"), "!a",
			), `cannot handle example.org/v1 Gadget`,
		},
		"OneInAllNamespaces": {
			"an operator for all namespaces conflicts with one for some",
			withNamespaces(operator("one", shared, "Gadget"), "a"), operator("two", shared, "Gadget"),
			`cannot handle example.org/v1 Gadget`,
		},
		"OtherInAllNamespaces": {
			"an operator for some namespaces conflicts with one for all", operator("one", shared, "Gadget"),
			withNamespaces(
				operator("two", shared, "Gadget"), "a",
			), `cannot handle example.org/v1 Gadget`,
		},
		"OtherNamespacesSamePlace": {
			"the same field is an error even in different namespaces, because of cluster-scoped kinds", withNamespaces(
				withDiffbase(operator("one", "one", "Gadget"), diffbase.Status{}), "a",
			), withNamespaces(withDiffbase(operator("two", "two", "Gadget"), diffbase.Status{}), "b"),
			"its memory at the same place, /status/kopf/last-handled-configuration",
		},
		"ManyHandlersOfOneKind": {
			"several handlers of one kind in one operator are not an error", operator(
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
			t.Errorf("two managers may be for two clusters, or run one after the other: %v", err)
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
