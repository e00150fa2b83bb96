package agreement_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestAgreement shows that the API server sends the requests that a handler is called for, and, with exact conditions,
// no others. The marks are D-match-conditions and D-own-writes.
func TestAgreement(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) { requireAgreement(t, kopf.Settings{}, filters(), requests()) })
}

// TestAgreementOnWideObjects shows that large objects do not exceed the cost limit for conditions. An API server
// refuses requests above that limit, so a tenant could otherwise block requests.
func TestAgreementOnWideObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		requireAgreement(t, kopf.Settings{}, []filter{{name: "wide", narrow: whole, isApproximate: true}}, wideWrites())
	})
}

// TestAgreementOnNamespaces shows that requests for objects in other namespaces are not sent: the mark is
// D-webhook-namespaces.
func TestAgreementOnNamespaces(t *testing.T) {
	for name, settings := range map[string]kopf.Settings{
		"patterns": {Namespaces: []string{"team-*,!*-test,team-1-test", "[!k-z]*", "s?op"}},
		"expressions": {
			NamespacePatterns: []*regexp.Regexp{regexp.MustCompile(`pr-\d+|SHOP`), regexp.MustCompile("(?i)Team-[ab]")},
		},
		"excluded": {Admission: kopf.AdmissionSettings{ExcludedNamespaces: []string{"kube-*", "team-?"}}},
		"both": {
			Namespaces: []string{"!*-test"}, Admission: kopf.AdmissionSettings{ExcludedNamespaces: []string{"!team-*"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requireAgreement(t, settings, []filter{{name: name, narrow: whole, conditions: 1}},
					namespacedCreations())
			})
		})
	}
}

func requireAgreement(t *testing.T, settings kopf.Settings, all []filter, asked []request) {
	t.Helper()
	at := operate(t, all, settings)
	if len(at.entries) != len(all) {
		t.Fatalf("want an entry for each filter: %d entries, %d filters", len(at.entries), len(all))
	}
	compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 28)))
	for i, one := range all {
		entry := at.entries[i]
		matcher := compile(t, compiler, entry)
		want := one.conditions
		if slices.Contains(entry.Rules[0].Resources, "widgets") {
			want++ // the condition for own writes, which are updates of the main resource
		}
		if got := len(entry.MatchConditions); got != want {
			t.Errorf("%s: got %d conditions, want %d: %v", entry.Name, got, want, entry.MatchConditions)
		}
		for _, r := range asked {
			if !slices.Contains(entry.Rules[0].Resources, inRule(r.subresource, entry)) {
				continue // the API server never sends it
			}
			result := matcher.Match(t.Context(), attributes(r), nil, nil)
			called := at.isHandlerCalled(t, entry, r)
			if result.Error != nil || called && !result.Matches || result.Matches && !called && !one.isApproximate {
				t.Errorf("filter %q (%s): sent: %t (error: %v); called: %t; %v for %.400s", one.name, entry.Name,
					result.Matches, result.Error, called, entry.MatchConditions, fmt.Sprintf("%+v", r))
			}
		}
	}
}

// inRule returns the name of a request's resource in the rules of an entry.
func inRule(subresource string, entry admissionregistrationv1.ValidatingWebhook) string {
	every := slices.Contains(entry.Rules[0].Resources, "widgets/*")
	switch {
	case subresource == "":
		return "widgets"
	case every:
		return "widgets/*"
	default:
		return "widgets/" + subresource
	}
}

// compile compiles the conditions of an entry, as an API server does.
func compile(
	t *testing.T, compiler plugincel.ConditionCompiler, entry admissionregistrationv1.ValidatingWebhook,
) matchconditions.Matcher {
	t.Helper()
	var expressions []plugincel.ExpressionAccessor
	names := sets.New[string]()
	for _, one := range entry.MatchConditions {
		condition := matchconditions.MatchCondition(one)
		expressions = append(expressions, &condition)
		if wrong := validation.IsQualifiedName(one.Name); len(wrong) > 0 || names.Has(one.Name) {
			t.Errorf("the API server would refuse the name %q: %v", one.Name, wrong)
		}
		names.Insert(one.Name)
	}
	ready := compiler.CompileCondition(
		expressions, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions,
	)
	if wrong := ready.CompilationErrors(); len(wrong) > 0 {
		t.Errorf("%s: the API server would refuse the conditions: %v; %v", entry.Name, wrong, entry.MatchConditions)
	}
	return matchconditions.NewMatcher(ready, entry.FailurePolicy, "webhook", "validate", entry.Name)
}

// attributes returns a request in the form of an API server.
func attributes(r request) *admission.VersionedAttributes {
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	made := &admission.VersionedAttributes{VersionedKind: kind}
	if r.object != nil {
		made.VersionedObject = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(r.object)}
	}
	if r.old != nil {
		made.VersionedOldObject = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(r.old)}
	}
	made.Attributes = admission.NewAttributesRecord(
		made.VersionedObject, made.VersionedOldObject, kind, r.in(), "w", kind.GroupVersion().WithResource("widgets"),
		r.subresource, admission.Operation(r.operation), nil, false, &user.DefaultInfo{Name: "ann"},
	)
	return made
}
