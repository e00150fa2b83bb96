package clusterneeds

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// HandlerNeeds is one handler of an operator's plan, and the selector of its resources.
type HandlerNeeds struct {
	Selector discovery.Selector
	Handler  *handlers.Handler
}

// PermissionInput is what determines the permissions of an operator.
type PermissionInput struct {
	// Handlers is the plan of the operator.
	Handlers []HandlerNeeds
	// Namespaces are the served namespaces; none means the whole cluster.
	Namespaces namespaces.Patterns
	// ScanOnce is true if neither CRDs nor namespaces are watched.
	ScanOnce bool
	// CachedReads are kinds that handlers read from a cache.
	CachedReads []schema.GroupVersionKind
	// NoEvents is true if the operator posts no Kubernetes events.
	NoEvents bool
	// Peering is the name of the peering object; empty if the operator does not look for peers. PeeringOptional is true
	// if the operator acts without the object. PeeringClusterwide uses the cluster-scoped kind even with Namespaces.
	Peering                             string
	PeeringOptional, PeeringClusterwide bool
	// Managed is the name of the webhook configurations that the operator maintains, and Secret holds its certificate;
	// both are empty if they are not used.
	Managed string
	Secret  types.NamespacedName
	// LeaderElection is true if a Lease in the namespace of the operator decides who acts.
	LeaderElection bool
	// Shards is the number of ranges of objects that the replicas share by Leases in that namespace; zero if they do
	// not.
	Shards int
	// MetricsSecure is true if the operator reviews the tokens and permissions of those who read its metrics.
	MetricsSecure bool
	// Declared are the rules that the user has declared, for requests of handlers.
	Declared []rbacv1.PolicyRule
}

// Scope is the set of namespaces in which a rule applies.
type Scope int

// The scopes.
const (
	// ServedNamespaces are those that the operator serves: each of them, or the whole cluster if it serves the whole
	// cluster or any namespaces that match a pattern.
	ServedNamespaces Scope = iota
	// WholeCluster is for resources without a namespace. It needs a ClusterRole in any case.
	WholeCluster
	// OneNamespace is [Need.Namespace], or the namespace of the operator's pods if that is empty.
	OneNamespace
)

// Need is one rule that an operator needs.
type Need struct {
	// Rule has the verbs of one feature. Its resources are of one group, except those of peering.
	Rule      rbacv1.PolicyRule
	Scope     Scope
	Namespace string
	// Feature is what uses the permission, in the words of docs/permissions.md.
	Feature string
	// Without is the effect of a missing permission.
	Without string
	// Handlers are those that need the rule, in the order of registration. None means the operator as a whole.
	Handlers []*handlers.Handler
	// Optional is true if the operator works without the permission, with less comfort.
	Optional bool
}

// Namespaces returns the namespaces in which the rule is needed, for an operator that serves these namespaces and runs
// in its own one; "" is the whole cluster. For patterns, it is the whole cluster.
func (n Need) Namespaces(served namespaces.Patterns, own string) []string {
	names, plain := served.PlainNames()
	switch {
	case n.Scope == OneNamespace:
		return []string{cmp.Or(n.Namespace, own)}
	case n.Scope == WholeCluster || !plain || len(names) == 0:
		return []string{""}
	}
	return names
}

// Unresolved is a kind that was not found among the resources, or found more than once.
type Unresolved struct {
	// Selector names the kind of handlers. Rule is set instead for a declared rule.
	Selector discovery.Selector
	Rule     *rbacv1.PolicyRule
	Handlers []*handlers.Handler
	// Ambiguous are the resources that share the name; none means that there is no such resource.
	Ambiguous []discovery.Resource
}

// Needs returns the needs of an operator, in a stable order, for these resources of the cluster: those of the handled
// kinds and of their children first. Kinds that the resources do not have are returned apart; all other needs are
// complete.
func Needs(o PermissionInput, served []discovery.Resource) (needs []Need, unresolved []Unresolved) {
	c := &collector{operator: o, served: served}
	c.addKinds()
	c.addCachedReads()
	c.addCluster()
	c.addPeering()
	c.addAdmission()
	c.addLeases()
	c.addMetrics()
	c.addDeclared()
	return c.needs, c.unresolved
}

// collector holds the results so far.
type collector struct {
	operator   PermissionInput
	served     []discovery.Resource
	needs      []Need
	unresolved []Unresolved
}

// addKinds adds the needs of handled kinds and of children, by kind.
func (c *collector) addKinds() {
	selectors, by := c.operator.bySelector()
	for _, selector := range selectors {
		// Admission handlers get objects from requests, also those of several kinds of one name.
		own := slices.DeleteFunc(slices.Clone(by[selector]), registry.IsAdmissionHandler)
		if len(own) == 0 {
			if len(selector.SelectFrom(c.served)) == 0 {
				c.unresolved = append(c.unresolved, Unresolved{Selector: selector, Handlers: by[selector]})
			}
			continue
		}
		for _, resource := range c.resolve(selector, own) {
			c.addKind(resource, own)
		}
	}
}

// bySelector returns the selectors in the order of registration, and the handlers of each.
func (o PermissionInput) bySelector() (all []discovery.Selector, by map[discovery.Selector][]*handlers.Handler) {
	by = map[discovery.Selector][]*handlers.Handler{}
	for _, one := range o.Handlers {
		if by[one.Selector] == nil {
			all = append(all, one.Selector)
		}
		by[one.Selector] = append(by[one.Selector], one.Handler)
	}
	return all, by
}

// resolve returns the resources of a selector, each once for all versions. It records a selector without a resource,
// and one whose name means several resources: the operator serves none of them.
func (c *collector) resolve(selector discovery.Selector, all []*handlers.Handler) (found []discovery.Resource) {
	for _, one := range selector.SelectFrom(c.served) {
		isKnown := func(other discovery.Resource) bool { return other.GroupResource() == one.GroupResource() }
		if !slices.ContainsFunc(found, isKnown) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b discovery.Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural))
	})
	switch {
	case len(found) == 0:
		c.unresolved = append(c.unresolved, Unresolved{Selector: selector, Handlers: all})
	case len(found) > 1 && selector.IsSpecific():
		c.unresolved = append(c.unresolved, Unresolved{Selector: selector, Handlers: all, Ambiguous: found})
		return nil
	}
	return found
}

// add adds a need for one resource, or adds the verbs and the handlers to a need of the same feature.
func (c *collector) add(need Need) {
	for i, one := range c.needs {
		if one.Feature == need.Feature && one.Scope == need.Scope && one.Namespace == need.Namespace &&
			slices.Equal(one.Rule.APIGroups, need.Rule.APIGroups) &&
			slices.Equal(one.Rule.Resources, need.Rule.Resources) &&
			slices.Equal(one.Rule.ResourceNames, need.Rule.ResourceNames) &&
			slices.Equal(one.Rule.NonResourceURLs, need.Rule.NonResourceURLs) {
			c.needs[i].Rule.Verbs = union(one.Rule.Verbs, need.Rule.Verbs)
			c.needs[i].Handlers = union(one.Handlers, need.Handlers)
			return
		}
	}
	c.needs = append(c.needs, need)
}

// union returns the elements of both, each once, in their order.
func union[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// rule returns a rule for one resource.
func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// scopeOf returns the scope of rules for a resource.
func scopeOf(r discovery.Resource) Scope {
	if r.Namespaced {
		return ServedNamespaces
	}
	return WholeCluster
}
