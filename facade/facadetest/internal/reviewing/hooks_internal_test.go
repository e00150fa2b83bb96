package reviewing

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// The selector of namespaces is about the labels of a Namespace that is written, and about the stored ones otherwise.
func TestEntriesSelectNamespacesByTheirOwnLabels(t *testing.T) {
	const labelled, unlabelled = `{"kind":"Namespace","metadata":{"name":"a","labels":{"team":"x"}}}`,
		`{"kind":"Namespace","metadata":{"name":"a"}}`
	server := memapi.New()
	server.Put(memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}, map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"team": "x"}},
	})
	entry := Hook{namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}}
	for name, tc := range map[string]struct {
		reason                string
		operation             admissionv1.Operation
		resource, subresource string
		object                string
		want                  bool
	}{
		"Created":     {"it has the label", admissionv1.Create, "namespaces", "", labelled, true},
		"Other":       {"it does not have the label", admissionv1.Create, "namespaces", "", unlabelled, false},
		"Updated":     {"the new labels count", admissionv1.Update, "namespaces", "", unlabelled, false},
		"Deleted":     {"the stored labels count", admissionv1.Delete, "namespaces", "", "", true},
		"Subresource": {"the stored labels count", admissionv1.Update, "namespaces", "status", unlabelled, true},
		"Node":        {"it is outside of namespaces", admissionv1.Create, "nodes", "", unlabelled, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := entry.selects(&admissionv1.AdmissionRequest{
				Operation: tc.operation, Name: "a", SubResource: tc.subresource,
				Resource: metav1.GroupVersionResource{Version: "v1", Resource: tc.resource},
				Object:   runtime.RawExtension{Raw: []byte(tc.object)},
			}, server)
			if got != tc.want {
				t.Errorf("%s: sent: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRulesHaveScopes(t *testing.T) {
	cases := map[string]struct {
		reason              string
		scope               admissionregistrationv1.ScopeType
		namespace, resource string
		want                bool
	}{
		"All":            {"it is for everything", admissionregistrationv1.AllScopes, "", "nodes", true},
		"Inside":         {"it is in a namespace", admissionregistrationv1.NamespacedScope, "a", "pods", true},
		"Outside":        {"it is outside of namespaces", admissionregistrationv1.NamespacedScope, "", "nodes", false},
		"Namespace":      {"a Namespace is outside", admissionregistrationv1.NamespacedScope, "a", "namespaces", false},
		"Cluster":        {"it is outside of namespaces", admissionregistrationv1.ClusterScope, "", "nodes", true},
		"ClusterInside":  {"it is in a namespace", admissionregistrationv1.ClusterScope, "a", "pods", false},
		"ClusterIsAName": {"a Namespace is outside", admissionregistrationv1.ClusterScope, "a", "namespaces", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			entry := Hook{rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: &tc.scope,
				},
			}}}
			got := entry.hasRule(&admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: tc.namespace,
				Resource: metav1.GroupVersionResource{Version: "v1", Resource: tc.resource},
			})
			if got != tc.want {
				t.Errorf("%s: sent: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
