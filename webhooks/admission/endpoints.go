package admission

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
)

// uniqueHandlerName returns the name of a handler, which is unique for its type: its id. If handlers for other
// resources have the same id, it is the resource and the id.
func uniqueHandlerName(r RegisteredHandler, all []RegisteredHandler) string {
	for _, other := range all {
		alike := other.Handler.ID == r.Handler.ID && other.Handler.Mutating == r.Handler.Mutating
		// Twins are the same handler, so they share the name.
		if alike && other.Selector != r.Selector && !other.Handler.IsTwin(r.Handler) {
			return selectorPathPart(r.Selector) + "/" + r.Handler.ID
		}
	}
	return r.Handler.ID
}

// selectorPathPart returns a selector as a part of a path, such as "widget.v1.example.org".
func selectorPathPart(s discovery.Selector) string {
	name := cmp.Or(s.Name, s.Kind, s.Plural, s.Singular, s.Shortcut, s.Category)
	switch {
	case s.Everything:
		name = "everything"
	case s.Func != nil:
		name = "function"
	}
	parts := []string{name}
	for _, part := range []discovery.SelectorPart{s.Version, s.Group} {
		if part.IsSet && part.Text != "" {
			parts = append(parts, part.Text)
		}
	}
	return strings.ToLower(strings.Join(parts, "."))
}

// handlerPath returns the path of requests for a handler, below the path of the operator.
func handlerPath(r RegisteredHandler, all []RegisteredHandler) string {
	if r.Handler.Mutating {
		return "mutate/" + uniqueHandlerName(r, all)
	}
	return "validate/" + uniqueHandlerName(r, all)
}

// handlerEndpoints returns the endpoints of all handlers. Without AsKopf, each handler has its own path. The paths of
// Kopf are always served, for configurations that users have written: one for each id, and the root for all handlers.
func (o Options) handlerEndpoints() (made []server.Endpoint) {
	// known contains the used paths. A path of Kopf must not replace that of a handler.
	known := map[string]bool{}
	for i, r := range o.Registrations {
		if o.AsKopf {
			break
		}
		if indexOfFirstTwin(r, o.Registrations) < i {
			continue // the first registration has the endpoint
		}
		endpoint := server.Endpoint{Path: handlerPath(r, o.Registrations), Handler: r.Handler.ID, Type: "validating"}
		if r.Handler.Mutating {
			endpoint.Type = "mutating"
		}
		known[endpoint.Path] = true
		made = append(made, endpoint)
	}
	// In Kopf, a path is for all handlers with its id, of both types. The finalizer handler does not exist in Kopf.
	for _, r := range o.Registrations {
		if id := r.Handler.ID; !known[id] && !r.Handler.IsOptimization {
			known[id] = true
			made = append(made, server.Endpoint{Path: id, Handler: id})
		}
	}
	// The empty path is the root.
	return append(made, server.Endpoint{})
}

// indexOfFirstTwin returns the index of the first registration of the same function under the same id. All of them
// share one endpoint and one entry.
func indexOfFirstTwin(r RegisteredHandler, all []RegisteredHandler) int {
	return slices.IndexFunc(all, func(other RegisteredHandler) bool { return other.Handler.IsTwin(r.Handler) })
}

// sparingTimeoutSeconds is the timeout, in seconds, of handlers that requests do not depend on. An API server that
// cannot connect waits for the whole timeout, so it is much shorter than the 30 s of other handlers.
const sparingTimeoutSeconds = 3

// configurationHooks returns the handlers in the form for the configurations, with the known resources.
func (o Options) configurationHooks(known resources) []configurations.Hook {
	all := make([]configurations.Hook, 0, len(o.Registrations))
	// places maps the indexes of registrations to those of hooks.
	places := make(map[int]int, len(o.Registrations))
	for i, r := range o.Registrations {
		hook := configurations.Hook{
			ID: r.Handler.ID, Mutating: r.Handler.Mutating, Operations: r.Handler.Operations,
			Subresource: r.Handler.Subresource, SideEffects: r.Handler.SideEffects,
			IgnoreFailures: r.Handler.IgnoreFailures, Persistent: r.Handler.Persistent,
		}
		// With AsKopf, the id determines the name and the path.
		if !o.AsKopf {
			hook.Name, hook.Path = uniqueHandlerName(r, o.Registrations), handlerPath(r, o.Registrations)
		}
		if r.Handler.Labels != nil {
			hook.Labels = configurations.SelectorRequirements(r.Handler.Labels)
		}
		if r.Handler.IsOptimization {
			hook.Timeout = sparingTimeoutSeconds
		}
		hook.Resources = known.reviewedBy(r)
		o.restrictHook(&hook, r.Handler, o.isOnlyForNamespaces(r, known))
		if first := indexOfFirstTwin(r, o.Registrations); first < i {
			// One entry must match the requests of all twins.
			all[places[first]].MergeTwin(hook)
			continue
		}
		places[i] = len(all)
		all = append(all, hook)
	}
	return all
}

// restrictHook limits the requests that are sent to a hook, as far as selectors and CEL can express that.
// onlyNamespaces is true if the entry of the hook only matches Namespaces.
func (o Options) restrictHook(hook *configurations.Hook, h *handlers.Handler, onlyNamespaces bool) {
	hook.Conditions = matchConditions(h)
	// Handlers are not called for own writes, so these need not be sent.
	if o.OwnWrites != nil {
		own := o.OwnWrites()
		if one, ok := ownWriteCondition(h, own.Prefixes, own.Finalizer); ok {
			hook.Conditions = append([]admissionregistrationv1.MatchCondition{one}, hook.Conditions...)
		}
	}
	if o.ReviewedNamespaces == nil {
		return
	}
	scope := o.ReviewedNamespaces()
	var byLabels []metav1.LabelSelectorRequirement
	if by := scope.Served.LabelSelector(); by != nil && !onlyNamespaces {
		// The reviewer does not check labels of namespaces, so the entries have to. For a Namespace, the API server
		// evaluates a namespaceSelector with the labels of the Namespace itself.
		byLabels = configurations.SelectorRequirements(by)
	}
	if o.AsKopf {
		scope.Served = nil // Kopf's entries cover the whole cluster
	}
	// Names become a namespaceSelector, and patterns a condition.
	in, notIn, rest, hasRest := scope.SplitByName()
	if slices.ContainsFunc(hook.Resources, isNamespace) {
		// A selector would apply to the Namespace objects themselves, so the names are also checked by the condition.
		rest, hasRest = scope, len(in)+len(notIn) > 0 || hasRest
	} else {
		hook.Namespaces = configurations.NamespaceRequirements(in, notIn)
	}
	hook.Namespaces = append(hook.Namespaces, byLabels...)
	if one, ok := namespaceCondition(rest); ok && hasRest {
		hook.Conditions = append([]admissionregistrationv1.MatchCondition{one}, hook.Conditions...)
	}
}

// isOnlyForNamespaces reports whether the entry of a handler matches no other resources than Namespaces.
func (o Options) isOnlyForNamespaces(r RegisteredHandler, known resources) bool {
	return !slices.ContainsFunc(o.Registrations, func(other RegisteredHandler) bool {
		return other.Handler.IsTwin(r.Handler) && slices.ContainsFunc(known.reviewedBy(other), isNotNamespace)
	})
}

// isNotNamespace reports whether the resource is not Namespace.
func isNotNamespace(r discovery.Resource) bool { return !isNamespace(r) }

// isNamespace reports whether the resource is Namespace.
func isNamespace(r discovery.Resource) bool { return r.Group == "" && r.Plural == "namespaces" }

// entryForm returns the form of the entries. Their names end with the name of the operator, because several operators
// can share the objects. Kopf uses the name of the objects.
func (o Options) entryForm() configurations.Form {
	suffix := o.Operator
	if o.AsKopf {
		suffix = o.Managed
	}
	return configurations.Form{Suffix: suffix, Conditions: o.Conditions, AsKopf: o.AsKopf}
}
