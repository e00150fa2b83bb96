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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// reviewTimeout is the default timeout of the API server, for entries without one.
const reviewTimeout = 10 * time.Second

// Hook is one entry of a webhook configuration, with the fields that the API server in memory supports.
type Hook struct {
	// URL is the address of the webhook; empty for a webhook behind a service in the cluster.
	URL string
	// Authority is the certificate authority of the server, in PEM.
	Authority []byte
	// Timeout limits the wait for the response.
	Timeout time.Duration
	// Conditions are the match conditions in CEL, which select requests for the webhook. See [Reviews].
	Conditions []admissionregistrationv1.MatchCondition
	// IgnoresFailure reports whether a failing webhook is skipped: its failure policy is Ignore.
	IgnoresFailure bool

	name     string
	mutating bool
	// isExactMatch is the match policy Exact: the webhook does not receive requests for other versions of its
	// resources.
	isExactMatch bool
	// supportsDryRun reports whether the webhook supports dry-run requests, by its declared side effects.
	supportsDryRun bool
	// reinvokeIfNeeded is the reinvocation policy IfNeeded: the webhook is called a second time if later ones change
	// the object.
	reinvokeIfNeeded                  bool
	rules                             []admissionregistrationv1.RuleWithOperations
	objectSelector, namespaceSelector *metav1.LabelSelector
}

// HooksOf returns the entries of all configurations, in their order. The result is never nil.
func HooksOf(configurations []client.Object) []Hook {
	hooks := []Hook{}
	for _, one := range configurations {
		switch one := one.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for _, entry := range one.Webhooks {
				h := newHook(entry.Name, entry.ClientConfig, entry.FailurePolicy, entry.TimeoutSeconds)
				h.mutating, h.rules, h.Conditions = true, entry.Rules, entry.MatchConditions
				h.objectSelector, h.namespaceSelector = entry.ObjectSelector, entry.NamespaceSelector
				h.setPolicies(entry.MatchPolicy, entry.SideEffects)
				h.reinvokeIfNeeded = entry.ReinvocationPolicy != nil &&
					*entry.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
				hooks = append(hooks, h)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for _, entry := range one.Webhooks {
				h := newHook(entry.Name, entry.ClientConfig, entry.FailurePolicy, entry.TimeoutSeconds)
				h.rules, h.objectSelector, h.namespaceSelector = entry.Rules, entry.ObjectSelector,
					entry.NamespaceSelector
				h.Conditions = entry.MatchConditions
				h.setPolicies(entry.MatchPolicy, entry.SideEffects)
				hooks = append(hooks, h)
			}
		}
	}
	return hooks
}

// newHook returns the part of an entry that is common to mutating and validating webhooks.
func newHook(
	name string, at admissionregistrationv1.WebhookClientConfig,
	policy *admissionregistrationv1.FailurePolicyType, seconds *int32,
) Hook {
	h := Hook{name: name, Timeout: reviewTimeout, Authority: at.CABundle}
	h.IgnoresFailure = policy != nil && *policy == admissionregistrationv1.Ignore
	if at.URL != nil {
		h.URL = *at.URL
	}
	if seconds != nil {
		h.Timeout = time.Duration(*seconds) * time.Second
	}
	return h
}

// setPolicies sets the match policy and the support of dry-run requests. By the API's defaults, the match policy is
// Equivalent, and side effects are unknown.
func (h *Hook) setPolicies(
	match *admissionregistrationv1.MatchPolicyType, effects *admissionregistrationv1.SideEffectClass,
) {
	h.isExactMatch = match != nil && *match == admissionregistrationv1.Exact
	h.supportsDryRun = effects != nil && (*effects == admissionregistrationv1.SideEffectClassNone ||
		*effects == admissionregistrationv1.SideEffectClassNoneOnDryRun)
}

// matchesSelectors reports whether the selectors of the entry match the request. As in the API server, the object
// selector matches the object or the old object, and the namespace selector does not apply to cluster-scoped objects,
// except namespaces.
func (h Hook) matchesSelectors(r *admissionv1.AdmissionRequest, server *memapi.Server) bool {
	return (matchesLabels(h.objectSelector, objectLabels(r.Object.Raw)) ||
		matchesLabels(h.objectSelector, objectLabels(r.OldObject.Raw))) &&
		(r.Namespace == "" && !isOfNamespace(r) || matchesLabels(h.namespaceSelector, namespaceLabels(r, server)))
}

// hasRule reports whether a rule of the entry covers the operation, the resource and its version.
func (h Hook) hasRule(r *admissionv1.AdmissionRequest) bool {
	resource := r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return slices.ContainsFunc(h.rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
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
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.name, err))
}

// requestDeniedError returns the API server's error for a request that the webhook denies, with the same texts.
func (h Hook) requestDeniedError(result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	// The code of a webhook only counts from 400 on.
	status.Status, status.Code = metav1.StatusFailure, max(status.Code, http.StatusBadRequest)
	by := fmt.Sprintf("admission webhook %q denied the request", h.name)
	if text := cmp.Or(status.Message, string(status.Reason)); text != "" {
		status.Message = by + ": " + text
	} else {
		status.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// applyJSONPatch applies a JSON patch.
func applyJSONPatch(document, patch []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(document)
}
