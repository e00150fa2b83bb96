package configurations

import (
	"cmp"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// Hook is one handler of admission requests, as far as the cluster has to know it.
type Hook struct {
	// ID is the full id of the handler.
	ID string
	// Name is what the entry is named after, and Path what requests for the handler are sent to, below the path of the
	// server, not escaped. Empty is the id. Where an id stands for handlers of several kinds, they need other ones.
	Name, Path string
	// Mutating tells in which of the two objects the entry stands.
	Mutating bool
	// Resources are all those that the handler's selector matches; none makes an entry that no request fits. Unlike for
	// objects that are watched, those of the core group have no priority over others.
	Resources []discovery.Resource
	// Operations are CREATE, UPDATE, DELETE, CONNECT; none is all. Kopf: operations.
	Operations []string
	// Subresource is empty for the objects as a whole; "*" is any, and them. Kopf: subresource.
	Subresource string
	// Labels are what the objects must have, as far as it can be said so. See [Requirements].
	Labels []metav1.LabelSelectorRequirement
	// Namespaces are what the namespaces of the objects must have, as far as it can be said so.
	Namespaces []metav1.LabelSelectorRequirement
	// Conditions are what else can be said of the requests, in CEL. Kopf has none.
	Conditions []admissionregistrationv1.MatchCondition
	// SideEffects tells that the handler changes something elsewhere, though not for requests of a dry run. Kopf:
	// side_effects.
	SideEffects bool
	// IgnoreFailures lets requests pass while the server does not answer. Kopf: ignore_failures.
	IgnoreFailures bool
	// Persistent keeps the entry when the operator exits. Kopf: persistent.
	Persistent bool
	// Timeout is how many seconds the API server waits for an answer; zero is [Timeout].
	Timeout int32

	more []Hook // further registrations of the same function: see Add
}

// Add merges another registration of the same function under the same id into the hook. The entry sends the requests
// for both of them. Labels and conditions stay only if both have the same ones, and of the requirements for namespaces
// those that both have: the server checks the others.
func (h *Hook) Add(other Hook) {
	if !reflect.DeepEqual(h.Labels, other.Labels) {
		h.Labels = nil
	}
	if !reflect.DeepEqual(h.Conditions, other.Conditions) {
		h.Conditions = nil
	}
	h.Namespaces = slices.DeleteFunc(slices.Clone(h.Namespaces), func(one metav1.LabelSelectorRequirement) bool {
		return !slices.ContainsFunc(other.Namespaces, func(theirs metav1.LabelSelectorRequirement) bool {
			return reflect.DeepEqual(one, theirs)
		})
	})
	h.SideEffects = h.SideEffects || other.SideEffects
	h.IgnoreFailures = h.IgnoreFailures && other.IgnoreFailures
	h.Persistent = h.Persistent || other.Persistent
	h.Timeout = max(cmp.Or(h.Timeout, Timeout), cmp.Or(other.Timeout, Timeout))
	h.more = append(h.more, other)
}

func (h Hook) name() string { return cmp.Or(h.Name, h.ID) }

func (h Hook) path() string { return cmp.Or(h.Path, h.ID) }

// operations are those of the rules. Kopf sends deletions to mutating handlers, too, which do not get them: an endpoint
// that is down would hold deletions up for nothing.
func (h Hook) operations(f Form) []admissionregistrationv1.OperationType {
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

// rules are one for each resource of each registration; equal ones are left out.
func (h Hook) rules(f Form) []admissionregistrationv1.RuleWithOperations {
	scope := admissionregistrationv1.AllScopes
	var all []admissionregistrationv1.RuleWithOperations
	for _, resource := range h.Resources {
		all = append(all, admissionregistrationv1.RuleWithOperations{
			Operations: h.operations(f),
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version},
				Resources: h.resources(resource.Plural), Scope: &scope,
			},
		})
	}
	for _, other := range h.more {
		for _, rule := range other.rules(f) {
			if !slices.ContainsFunc(all, func(r admissionregistrationv1.RuleWithOperations) bool {
				return reflect.DeepEqual(r, rule)
			}) {
				all = append(all, rule)
			}
		}
	}
	return all
}

// resources are what the rules have for a resource: "plural/*" alone would leave the objects as a whole out, which the
// handler takes.
func (h Hook) resources(plural string) []string {
	switch h.Subresource {
	case "":
		return []string{plural}
	case "*":
		return []string{plural, plural + "/*"}
	default:
		return []string{plural + "/" + h.Subresource}
	}
}
