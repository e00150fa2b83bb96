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

// The marks are D-match-conditions and D-own-writes.
func TestAgreement(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) { agree(t, kopf.Settings{}, filters(), requests()) })
}

// An API server refuses requests whose conditions cost too much: nothing that a tenant writes may come to that.
func TestAgreementOnWideObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		agree(t, kopf.Settings{}, []filter{{name: "wide", narrow: whole, more: true}}, wideWrites())
	})
}

// Requests for objects in other namespaces are not sent: the mark is D-webhook-namespaces.
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
				agree(t, settings, []filter{{name: name, narrow: whole, conditions: 1}}, elsewhere())
			})
		})
	}
}

func agree(t *testing.T, settings kopf.Settings, all []filter, asked []request) {
	t.Helper()
	at := operate(t, all, settings)
	if len(at.entries) != len(all) {
		t.Fatalf("%d entries for %d filters", len(at.entries), len(all))
	}
	compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 28)))
	for i, one := range all {
		entry := at.entries[i]
		matcher := compile(t, compiler, entry)
		want := one.conditions
		if slices.Contains(entry.Rules[0].Resources, "widgets") {
			want++ // own writes are updates of objects as a whole
		}
		if got := len(entry.MatchConditions); got != want {
			t.Errorf("%s: %d conditions, not %d: %v", entry.Name, got, want, entry.MatchConditions)
		}
		for _, r := range asked {
			if !slices.Contains(entry.Rules[0].Resources, inRule(r.subresource, entry)) {
				continue // it is never sent
			}
			result := matcher.Match(t.Context(), attributes(r), nil, nil)
			called := at.calls(t, entry, r)
			if result.Error != nil || called && !result.Matches || result.Matches && !called && !one.more {
				t.Errorf("filter %q (%s): sent: %t (error: %v); called: %t; %v for %.400s", one.name, entry.Name,
					result.Matches, result.Error, called, entry.MatchConditions, fmt.Sprintf("%+v", r))
			}
		}
	}
}

// inRule is how the rules of an entry name what a request is about.
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

// compile makes the conditions of an entry ready, as an API server does.
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
			t.Errorf("the API server refuses the name %q: %v", one.Name, wrong)
		}
		names.Insert(one.Name)
	}
	ready := compiler.CompileCondition(
		expressions, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions,
	)
	if wrong := ready.CompilationErrors(); len(wrong) > 0 {
		t.Errorf("%s: the API server refuses the conditions: %v; %v", entry.Name, wrong, entry.MatchConditions)
	}
	return matchconditions.NewMatcher(ready, entry.FailurePolicy, "webhook", "validate", entry.Name)
}

// attributes are a request as an API server has it.
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
