package configurations

import (
	"cmp"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// Hook is the part of an admission handler that affects the webhook configurations.
type Hook struct {
	// ID is the full id of the handler.
	ID string
	// Name determines the name of the entry. Path is the path of requests for the handler below that of the server,
	// without escapes. Both default to the id. If handlers of several kinds have the same id, they need other values.
	Name, Path string
	// Mutating selects the object that contains the entry.
	Mutating bool
	// Resources are all resources that the handler's selector matches. Without any, the entry matches no requests.
	// Unlike for watched objects, resources of the core group do not have priority over others.
	Resources []discovery.Resource
	// Operations are CREATE, UPDATE, DELETE, CONNECT; none means all. Kopf: operations.
	Operations []string
	// Subresource is empty for the objects as a whole. "*" means any subresource, and the objects as a whole. Kopf:
	// subresource.
	Subresource string
	// Labels are the requirements for the labels of objects that a selector can express. See [SelectorRequirements].
	Labels []metav1.LabelSelectorRequirement
	// Namespaces are the requirements for the labels of namespaces that a selector can express. See
	// [NamespaceRequirements].
	Namespaces []metav1.LabelSelectorRequirement
	// Conditions are further conditions for requests, in CEL. Kopf does not have them.
	Conditions []admissionregistrationv1.MatchCondition
	// SideEffects is true if the handler has side effects, except for dry-run requests. Kopf: side_effects.
	SideEffects bool
	// IgnoreFailures allows requests while the server does not respond. Kopf: ignore_failures.
	IgnoreFailures bool
	// Persistent keeps the entry when the operator exits. Kopf: persistent.
	Persistent bool
	// Timeout is how many seconds the API server waits for a response; zero means [Timeout].
	Timeout int32

	twins []Hook // further registrations of the same function: see [Hook.MergeTwin]
}

// MergeTwin merges another registration of the same function under the same id into the hook. The entry then sends the
// requests of both. Labels and conditions only stay if they are equal. Of the requirements for namespaces, the common
// ones stay. The server checks the rest.
func (h *Hook) MergeTwin(other Hook) {
	if !reflect.DeepEqual(h.Labels, other.Labels) {
		h.Labels = nil
	}
	if !reflect.DeepEqual(h.Conditions, other.Conditions) {
		h.Conditions = nil
	}
	// All requirements of a selector must be met, so fewer of them match more namespaces.
	h.Namespaces = slices.DeleteFunc(slices.Clone(h.Namespaces), func(one metav1.LabelSelectorRequirement) bool {
		return !slices.ContainsFunc(other.Namespaces, func(theirs metav1.LabelSelectorRequirement) bool {
			return reflect.DeepEqual(one, theirs)
		})
	})
	// The merged entry must be correct for both, so each option takes the value that is safe for both.
	h.SideEffects = h.SideEffects || other.SideEffects
	h.IgnoreFailures = h.IgnoreFailures && other.IgnoreFailures
	h.Persistent = h.Persistent || other.Persistent
	h.Timeout = max(cmp.Or(h.Timeout, Timeout), cmp.Or(other.Timeout, Timeout))
	h.twins = append(h.twins, other)
}

// baseName returns the name from which the entry's name is derived.
func (h Hook) baseName() string { return cmp.Or(h.Name, h.ID) }

// pathOrID returns the path below that of the server.
func (h Hook) pathOrID() string { return cmp.Or(h.Path, h.ID) }

// ruleOperations returns the operations of the rules. Kopf also sends deletions for mutating handlers, which it then
// does not call. That is left out here, because a server that is down would block deletions without need.
func (h Hook) ruleOperations(f Form) []admissionregistrationv1.OperationType {
	given := h.Operations
	if len(given) == 0 && h.Mutating && !f.AsKopf {
		given = []string{"CREATE", "UPDATE", "CONNECT"}
	}
	if len(given) == 0 {
		return []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	var all []admissionregistrationv1.OperationType
	for _, operation := range given {
		all = append(all, admissionregistrationv1.OperationType(operation))
	}
	return all
}

// webhookRules returns a rule for each resource of each registration, without duplicates.
func (h Hook) webhookRules(f Form) []admissionregistrationv1.RuleWithOperations {
	// As in Kopf, rules cover namespaced and cluster-scoped resources.
	scope := admissionregistrationv1.AllScopes
	var all []admissionregistrationv1.RuleWithOperations
	for _, resource := range h.Resources {
		all = append(all, admissionregistrationv1.RuleWithOperations{
			Operations: h.ruleOperations(f),
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version},
				Resources: h.ruleResources(resource.Plural), Scope: &scope,
			},
		})
	}
	for _, other := range h.twins {
		for _, rule := range other.webhookRules(f) {
			if !slices.ContainsFunc(all, func(r admissionregistrationv1.RuleWithOperations) bool {
				return reflect.DeepEqual(r, rule)
			}) {
				all = append(all, rule)
			}
		}
	}
	return all
}

// ruleResources returns the resources of a rule. "plural/*" alone would exclude the objects as a whole, for which the
// handler is called, too. Kopf only has "plural/*".
func (h Hook) ruleResources(plural string) []string {
	switch h.Subresource {
	case "":
		return []string{plural}
	case "*":
		return []string{plural, plural + "/*"}
	default:
		return []string{plural + "/" + h.Subresource}
	}
}
