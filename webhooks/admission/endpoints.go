package admission

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
)

// nameOf is what a handler goes by among all of its type: its id, or, if others have that for other resources, the
// resource and the id.
func nameOf(r Registration, all []Registration) string {
	for _, other := range all {
		alike := other.Handler.ID == r.Handler.ID && other.Handler.Mutating == r.Handler.Mutating
		if alike && other.Selector != r.Selector && !other.Handler.Twin(r.Handler) {
			return resourceIn(r.Selector) + "/" + r.Handler.ID
		}
	}
	return r.Handler.ID
}

// resourceIn is a selector in a path, such as "widget.v1.example.org".
func resourceIn(s discovery.Selector) string {
	name := cmp.Or(s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut, s.Category)
	switch {
	case s.Everything:
		name = "everything"
	case s.Func != nil:
		name = "function"
	}
	parts := []string{name}
	for _, part := range []discovery.Part{s.Version, s.Group} {
		if part.Given && part.Text != "" {
			parts = append(parts, part.Text)
		}
	}
	return strings.ToLower(strings.Join(parts, "."))
}

// pathOf is what requests for a handler are sent to, below the path of the operator.
func pathOf(r Registration, all []Registration) string {
	if r.Handler.Mutating {
		return "mutate/" + nameOf(r, all)
	}
	return "validate/" + nameOf(r, all)
}

// endpoints are those of all handlers. Without AsKopf, each handler has a path of its own. The paths of Kopf are always
// served, for configurations that were written by hand: one for each id, and the root for all handlers.
func (o Options) endpoints() (made []server.Endpoint) {
	known := map[string]bool{}
	for i, r := range o.Registrations {
		if o.AsKopf {
			break
		}
		if firstTwin(r, o.Registrations) < i {
			continue
		}
		endpoint := server.Endpoint{Path: pathOf(r, o.Registrations), Handler: r.Handler.ID, Type: "validating"}
		if r.Handler.Mutating {
			endpoint.Type = "mutating"
		}
		known[endpoint.Path] = true
		made = append(made, endpoint)
	}
	for _, r := range o.Registrations {
		if id := r.Handler.ID; !known[id] && !r.Handler.Sparing {
			known[id] = true
			made = append(made, server.Endpoint{Path: id, Handler: id})
		}
	}
	return append(made, server.Endpoint{})
}

// firstTwin is the place of the first registration of the same function under the same id. They have one endpoint and
// one entry.
func firstTwin(r Registration, all []Registration) int {
	return slices.IndexFunc(all, func(other Registration) bool { return other.Handler.Twin(r.Handler) })
}

// sparingTimeout is for handlers that requests go on without, in seconds: far from the 30 of others, as an API server
// that does not get through waits for all of it.
const sparingTimeout = 3

// hooks are the handlers as the cluster has to know them, given the resources that are known.
func (o Options) hooks(known resources) []configurations.Hook {
	all := make([]configurations.Hook, 0, len(o.Registrations))
	places := make(map[int]int, len(o.Registrations))
	for i, r := range o.Registrations {
		hook := configurations.Hook{
			ID: r.Handler.ID, Mutating: r.Handler.Mutating, Operations: r.Handler.Operations,
			Subresource: r.Handler.Subresource, SideEffects: r.Handler.SideEffects,
			IgnoreFailures: r.Handler.IgnoreFailures, Persistent: r.Handler.Persistent,
		}
		if !o.AsKopf {
			hook.Name, hook.Path = nameOf(r, o.Registrations), pathOf(r, o.Registrations)
		}
		if r.Handler.Labels != nil {
			hook.Labels = configurations.Requirements(r.Handler.Labels)
		}
		if r.Handler.Sparing {
			hook.Timeout = sparingTimeout
		}
		hook.Resources = known.of(r)
		o.restrict(&hook, r.Handler, o.isOnlyForNamespaces(r, known))
		if first := firstTwin(r, o.Registrations); first < i {
			all[places[first]].Add(hook)
			continue
		}
		places[i] = len(all)
		all = append(all, hook)
	}
	return all
}

// restrict says which requests for its resources are sent to a hook, as far as selectors and CEL can say it. The entry
// of the hook may be for nothing but Namespaces.
func (o Options) restrict(hook *configurations.Hook, h *handlers.Handler, onlyNamespaces bool) {
	hook.Conditions = matchConditions(h)
	if o.Own != nil {
		own := o.Own()
		if one, ok := notOwnWrite(h, own.Prefixes, own.Finalizer); ok {
			hook.Conditions = append([]admissionregistrationv1.MatchCondition{one}, hook.Conditions...)
		}
	}
	if o.Scope == nil {
		return
	}
	scope := o.Scope()
	var byLabels []metav1.LabelSelectorRequirement
	if by := scope.Served.Labels(); by != nil && !onlyNamespaces {
		// The reviewer does not check labels, so the entries need them. The API server compares them with those of a
		// Namespace itself.
		byLabels = configurations.Requirements(by)
	}
	if o.AsKopf {
		scope.Served = nil // Kopf's entries are for the whole cluster
	}
	in, notIn, rest, hasRest := scope.In()
	if slices.ContainsFunc(hook.Resources, isNamespace) {
		// A selector would be about the names of these objects themselves.
		rest, hasRest = scope, len(in)+len(notIn) > 0 || hasRest
	} else {
		hook.Namespaces = configurations.Namespaces(in, notIn)
	}
	hook.Namespaces = append(hook.Namespaces, byLabels...)
	if one, ok := inNamespaces(rest); ok && hasRest {
		hook.Conditions = append([]admissionregistrationv1.MatchCondition{one}, hook.Conditions...)
	}
}

// isOnlyForNamespaces reports whether the entry of a handler is for no other resources.
func (o Options) isOnlyForNamespaces(r Registration, known resources) bool {
	return !slices.ContainsFunc(o.Registrations, func(other Registration) bool {
		return other.Handler.Twin(r.Handler) && slices.ContainsFunc(known.of(other), isOther)
	})
}

func isOther(r discovery.Resource) bool { return !isNamespace(r) }

func isNamespace(r discovery.Resource) bool { return r.Group == "" && r.Plural == "namespaces" }

// form is how the entries look. Those of an operator have its name: others may share the objects.
func (o Options) form() configurations.Form {
	suffix := o.Operator
	if o.AsKopf {
		suffix = o.Managed
	}
	return configurations.Form{Suffix: suffix, Conditions: o.Conditions, AsKopf: o.AsKopf}
}
