package reviewing

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// reviewTimeout is the default timeout of the API server in seconds, for entries without one.
const reviewTimeout = 10

// Hook is one entry of a webhook configuration. Entries of validating ones have the same fields, but for the
// reinvocation policy.
type Hook struct {
	admissionregistrationv1.MutatingWebhook
	mutating bool
}

// HooksOf returns the entries of all configurations, in their order. The result is never nil.
func HooksOf(configurations []client.Object) []Hook {
	hooks := []Hook{}
	for _, one := range configurations {
		switch one := one.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for _, entry := range one.Webhooks {
				hooks = append(hooks, Hook{entry, true})
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for _, entry := range one.Webhooks {
				hooks = append(hooks, Hook{MutatingWebhook: admissionregistrationv1.MutatingWebhook{
					Name: entry.Name, ClientConfig: entry.ClientConfig, TimeoutSeconds: entry.TimeoutSeconds,
					Rules: entry.Rules, MatchPolicy: entry.MatchPolicy, MatchConditions: entry.MatchConditions,
					NamespaceSelector: entry.NamespaceSelector, ObjectSelector: entry.ObjectSelector,
					FailurePolicy: entry.FailurePolicy, SideEffects: entry.SideEffects,
				}})
			}
		}
	}
	return hooks
}

// URL returns the address of the webhook; empty for a webhook behind a service in the cluster.
func (h Hook) URL() string { return ptr.Deref(h.ClientConfig.URL, "") }

// Timeout returns the limit of the wait for the response.
func (h Hook) Timeout() time.Duration {
	return time.Duration(ptr.Deref(h.TimeoutSeconds, reviewTimeout)) * time.Second
}

// IgnoresFailure reports whether a failing webhook is skipped.
func (h Hook) IgnoresFailure() bool {
	return ptr.Deref(h.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Ignore
}

// isExactMatch reports whether the webhook does not receive requests for other versions of its resources.
func (h Hook) isExactMatch() bool {
	return ptr.Deref(h.MatchPolicy, admissionregistrationv1.Equivalent) == admissionregistrationv1.Exact
}

// isReinvoked reports whether the webhook is called a second time if later ones change the object.
func (h Hook) isReinvoked() bool {
	return ptr.Deref(h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy) ==
		admissionregistrationv1.IfNeededReinvocationPolicy
}

// supportsDryRun reports whether the webhook supports dry-run requests, by its declared side effects.
func (h Hook) supportsDryRun() bool {
	effects := ptr.Deref(h.SideEffects, admissionregistrationv1.SideEffectClassUnknown)
	return effects == admissionregistrationv1.SideEffectClassNone ||
		effects == admissionregistrationv1.SideEffectClassNoneOnDryRun
}

// matchesSelectors reports whether the selectors of the entry match the request. As in the API server, the object
// selector matches the object or the old object, and the namespace selector does not apply to cluster-scoped objects,
// except namespaces.
func (h Hook) matchesSelectors(r *admissionv1.AdmissionRequest, server *memapi.Server) bool {
	return (matchesLabels(h.ObjectSelector, objectLabels(r.Object.Raw)) ||
		matchesLabels(h.ObjectSelector, objectLabels(r.OldObject.Raw))) &&
		(r.Namespace == "" && !isOfNamespace(r) || matchesLabels(h.NamespaceSelector, namespaceLabels(r, server)))
}

// hasRule reports whether a rule of the entry covers the operation, the resource and its version.
func (h Hook) hasRule(r *admissionv1.AdmissionRequest) bool {
	resource := r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return slices.ContainsFunc(h.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		operation := slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) ||
			slices.Contains(rule.Operations, admissionregistrationv1.OperationType(r.Operation))
		// "*" covers all resources without subresources, "pods/*" all subresources of pods, and "*/*" everything.
		named := slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, "*/*") ||
			slices.Contains(rule.Resources, "*") && r.SubResource == "" ||
			slices.Contains(rule.Resources, r.Resource.Resource+"/*") && r.SubResource != ""
		return operation && named && inScope(rule.Scope, r) && has(rule.APIGroups, r.Resource.Group) &&
			has(rule.APIVersions, r.Resource.Version)
	})
}

// inScope reports whether a rule covers objects of the same scope: namespaced or cluster-scoped. A Namespace counts as
// cluster-scoped, although its request has a namespace.
func inScope(scope *admissionregistrationv1.ScopeType, r *admissionv1.AdmissionRequest) bool {
	if scope == nil || *scope == admissionregistrationv1.AllScopes {
		return true
	}
	inNamespace := r.Namespace != "" && !isOfNamespace(r)
	return inNamespace == (*scope == admissionregistrationv1.NamespacedScope)
}

// matchesLabels reports whether the labels match the selector. A nil selector matches all objects. Nil labels represent
// an absent object, which only a nil or an empty selector matches.
func matchesLabels(selector *metav1.LabelSelector, of labels.Set) bool {
	if selector == nil {
		return true
	}
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && (chosen.Empty() || of != nil && chosen.Matches(of))
}

// objectLabels returns the labels of an encoded object: never nil for an object, and nil without one.
func objectLabels(text []byte) labels.Set {
	var object unstructured.Unstructured
	if len(text) == 0 || object.UnmarshalJSON(text) != nil {
		return nil
	}
	if set := object.GetLabels(); set != nil {
		return set
	}
	return labels.Set{}
}

// isOfNamespace reports whether the request is for an object of the kind Namespace.
func isOfNamespace(r *admissionv1.AdmissionRequest) bool {
	return r.Resource.Group == "" && r.Resource.Resource == "namespaces"
}

// namespaceLabels returns the labels of the object's namespace. The namespace need not exist in memory: the label with
// its name is always set. For a Namespace that is created or updated, the labels are its new ones.
func namespaceLabels(r *admissionv1.AdmissionRequest, server *memapi.Server) labels.Set {
	name, set := r.Namespace, labels.Set{}
	if isOfNamespace(r) {
		name = r.Name
	}
	if isOfNamespace(r) && r.SubResource == "" && r.Operation != admissionv1.Delete {
		set = objectLabels(r.Object.Raw)
	} else {
		namespaces := memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
		stored := unstructured.Unstructured{Object: server.Object(namespaces, "", name)}
		if stored.Object != nil {
			set = stored.GetLabels()
		}
	}
	return labels.Merge(set, labels.Set{corev1.LabelMetadataName: name})
}

// callFailedError returns the API server's error for a webhook that cannot be called or whose response is invalid.
func (h Hook) callFailedError(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.Name, err))
}

// requestDeniedError returns the API server's error for a request that the webhook denies, with the same texts.
func (h Hook) requestDeniedError(result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	// The code of a webhook only counts from 400 on.
	status.Status, status.Code = metav1.StatusFailure, max(status.Code, http.StatusBadRequest)
	by := fmt.Sprintf("admission webhook %q denied the request", h.Name)
	if text := cmp.Or(status.Message, string(status.Reason)); text != "" {
		status.Message = by + ": " + text
	} else {
		status.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// ApplyJSONPatch applies a JSON patch.
func ApplyJSONPatch(document, patch []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(document)
}
