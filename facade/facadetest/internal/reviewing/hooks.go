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

// reviewTimeout is how long the API server waits if an entry does not say it.
const reviewTimeout = 10 * time.Second

// Hook is an entry of a webhook configuration, as far as the API server in memory goes by it.
type Hook struct {
	// URL is where the webhook is served; empty for one of a service in the cluster.
	URL string
	// Authority is the certificate authority of the server, in PEM.
	Authority []byte
	// Timeout is how long the API server waits for an answer.
	Timeout time.Duration
	// Conditions are expressions in CEL for requests that the webhook is for; see [Reviews].
	Conditions []admissionregistrationv1.MatchCondition
	// Ignores is set if a webhook that fails is left out.
	Ignores bool

	name     string
	mutating bool
	// exact leaves out requests for other versions of the resources in the rules.
	exact bool
	// dryRun is set if the webhook may be called for a request without effects.
	dryRun bool
	// again is set if the webhook is called a second time after later ones have changed the object.
	again               bool
	rules               []admissionregistrationv1.RuleWithOperations
	objects, namespaces *metav1.LabelSelector
}

// HooksOf are the entries of all configurations; never nil.
func HooksOf(configurations []client.Object) []Hook {
	hooks := []Hook{}
	for _, one := range configurations {
		switch one := one.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for _, entry := range one.Webhooks {
				h := newHook(entry.Name, entry.ClientConfig, entry.FailurePolicy, entry.TimeoutSeconds)
				h.mutating, h.rules, h.Conditions = true, entry.Rules, entry.MatchConditions
				h.objects, h.namespaces = entry.ObjectSelector, entry.NamespaceSelector
				h.setPolicies(entry.MatchPolicy, entry.SideEffects)
				h.again = entry.ReinvocationPolicy != nil &&
					*entry.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
				hooks = append(hooks, h)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for _, entry := range one.Webhooks {
				h := newHook(entry.Name, entry.ClientConfig, entry.FailurePolicy, entry.TimeoutSeconds)
				h.rules, h.objects, h.namespaces = entry.Rules, entry.ObjectSelector, entry.NamespaceSelector
				h.Conditions = entry.MatchConditions
				h.setPolicies(entry.MatchPolicy, entry.SideEffects)
				hooks = append(hooks, h)
			}
		}
	}
	return hooks
}

func newHook(
	name string, at admissionregistrationv1.WebhookClientConfig,
	policy *admissionregistrationv1.FailurePolicyType, seconds *int32,
) Hook {
	h := Hook{name: name, Timeout: reviewTimeout, Authority: at.CABundle}
	h.Ignores = policy != nil && *policy == admissionregistrationv1.Ignore
	if at.URL != nil {
		h.URL = *at.URL
	}
	if seconds != nil {
		h.Timeout = time.Duration(*seconds) * time.Second
	}
	return h
}

func (h *Hook) setPolicies(
	match *admissionregistrationv1.MatchPolicyType, effects *admissionregistrationv1.SideEffectClass,
) {
	h.exact = match != nil && *match == admissionregistrationv1.Exact
	h.dryRun = effects != nil && (*effects == admissionregistrationv1.SideEffectClassNone ||
		*effects == admissionregistrationv1.SideEffectClassNoneOnDryRun)
}

// selects reports whether the selectors of the entry match the request.
func (h Hook) selects(r *admissionv1.AdmissionRequest, server *memapi.Server) bool {
	return (selects(h.objects, labelsOf(r.Object.Raw)) || selects(h.objects, labelsOf(r.OldObject.Raw))) &&
		(r.Namespace == "" && !isOfNamespace(r) || selects(h.namespaces, namespaceLabels(r, server)))
}

// hasRule reports whether the entry has a rule for the request.
func (h Hook) hasRule(r *admissionv1.AdmissionRequest) bool {
	resource := r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return slices.ContainsFunc(h.rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		operation := slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) ||
			slices.Contains(rule.Operations, admissionregistrationv1.OperationType(r.Operation))
		named := slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, "*/*") ||
			slices.Contains(rule.Resources, "*") && r.SubResource == "" ||
			slices.Contains(rule.Resources, r.Resource.Resource+"/*") && r.SubResource != ""
		return operation && named && inScope(rule.Scope, r) && has(rule.APIGroups, r.Resource.Group) &&
			has(rule.APIVersions, r.Resource.Version)
	})
}

// inScope reports whether a rule is for objects like that of the request: those of namespaces, or others.
func inScope(scope *admissionregistrationv1.ScopeType, r *admissionv1.AdmissionRequest) bool {
	if scope == nil || *scope == admissionregistrationv1.AllScopes {
		return true
	}
	inNamespace := r.Namespace != "" && !isOfNamespace(r)
	return inNamespace == (*scope == admissionregistrationv1.NamespacedScope)
}

// selects reports whether the labels match. A nil selector matches all; nil labels stand for an absent object.
func selects(selector *metav1.LabelSelector, of labels.Set) bool {
	if selector == nil {
		return true
	}
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && (chosen.Empty() || of != nil && chosen.Matches(of))
}

func labelsOf(text []byte) labels.Set {
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

// namespaceLabels are those of the namespace of the object, which need not exist in memory: it has the label with its
// name in any case. For a Namespace that is created or updated, they are its own new ones.
func namespaceLabels(r *admissionv1.AdmissionRequest, server *memapi.Server) labels.Set {
	name, set := r.Namespace, labels.Set{}
	if isOfNamespace(r) {
		name = r.Name
	}
	if isOfNamespace(r) && r.SubResource == "" && r.Operation != admissionv1.Delete {
		set = labelsOf(r.Object.Raw)
	} else {
		namespaces := memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
		stored := unstructured.Unstructured{Object: server.Object(namespaces, "", name)}
		if stored.Object != nil {
			set = stored.GetLabels()
		}
	}
	return labels.Merge(set, labels.Set{corev1.LabelMetadataName: name})
}

// failure is the answer for a webhook that does not answer.
func (h Hook) failure(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.name, err))
}

// denial is the answer for a request that the webhook denies.
func (h Hook) denial(result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	status.Status, status.Code = metav1.StatusFailure, max(status.Code, http.StatusBadRequest)
	by := fmt.Sprintf("admission webhook %q denied the request", h.name)
	if text := cmp.Or(status.Message, string(status.Reason)); text != "" {
		status.Message = by + ": " + text
	} else {
		status.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// patched applies a JSON patch.
func patched(document, patch []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(document)
}
