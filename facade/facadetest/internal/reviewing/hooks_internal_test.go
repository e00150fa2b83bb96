package reviewing

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestEntriesSelectNamespacesByTheirOwnLabels shows that a selector of namespaces uses the new labels of a Namespace
// that is written, and the stored labels otherwise.
func TestEntriesSelectNamespacesByTheirOwnLabels(t *testing.T) {
	const labelled, unlabelled = `{"kind":"Namespace","metadata":{"name":"a","labels":{"team":"x"}}}`,
		`{"kind":"Namespace","metadata":{"name":"a"}}`
	server := memapi.New()
	server.Put(memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}, map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"team": "x"}},
	})
	entry := Hook{}
	entry.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
	for name, tc := range map[string]struct {
		reason                string
		operation             admissionv1.Operation
		resource, subresource string
		object                string
		want                  bool
	}{
		"Created": {"a created Namespace with the label is selected",
			admissionv1.Create, "namespaces", "", labelled, true},
		"Other": {"a created Namespace without the label is not selected",
			admissionv1.Create, "namespaces", "", unlabelled, false},
		"Updated": {"the new labels of a Namespace decide",
			admissionv1.Update, "namespaces", "", unlabelled, false},
		"Deleted": {"the stored labels decide for a deletion",
			admissionv1.Delete, "namespaces", "", "", true},
		"Subresource": {"the stored labels decide for a subresource",
			admissionv1.Update, "namespaces", "status", unlabelled, true},
		"Node": {"a cluster-scoped object is always selected",
			admissionv1.Create, "nodes", "", unlabelled, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := entry.matchesSelectors(&admissionv1.AdmissionRequest{
				Operation: tc.operation, Name: "a", SubResource: tc.subresource,
				Resource: metav1.GroupVersionResource{Version: "v1", Resource: tc.resource},
				Object:   runtime.RawExtension{Raw: []byte(tc.object)},
			}, server)
			if got != tc.want {
				t.Errorf("%s: selected: got %t, want %t", tc.reason, got, tc.want)
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
		"All": {"scope * includes a node",
			admissionregistrationv1.AllScopes, "", "nodes", true},
		"Inside": {"scope Namespaced includes a pod",
			admissionregistrationv1.NamespacedScope, "a", "pods", true},
		"Outside": {"scope Namespaced excludes a node",
			admissionregistrationv1.NamespacedScope, "", "nodes", false},
		"Namespace": {"scope Namespaced excludes a Namespace",
			admissionregistrationv1.NamespacedScope, "a", "namespaces", false},
		"Cluster": {"scope Cluster includes a node",
			admissionregistrationv1.ClusterScope, "", "nodes", true},
		"ClusterInside": {"scope Cluster excludes a pod",
			admissionregistrationv1.ClusterScope, "a", "pods", false},
		"ClusterIsAName": {"scope Cluster includes a Namespace",
			admissionregistrationv1.ClusterScope, "a", "namespaces", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			entry := Hook{}
			entry.Rules = []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: &tc.scope,
				},
			}}
			got := entry.hasRule(&admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: tc.namespace,
				Resource: metav1.GroupVersionResource{Version: "v1", Resource: tc.resource},
			})
			if got != tc.want {
				t.Errorf("%s: matched: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
