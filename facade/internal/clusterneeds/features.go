package clusterneeds

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// retried is the effect of writes without permission.
const retried = "writes fail, and the object is retried with growing delays"

// addKind adds the needs of one handled kind, or of one kind of children.
func (c *collector) addKind(r discovery.Resource, all []*handlers.Handler) {
	var own, watched, children, writing, parents, withStatus []*handlers.Handler
	for _, h := range all {
		switch {
		case !registry.OnlyWatchesChildren(h):
			own = append(own, h)
		case h.AllowAnyObject:
			watched = append(watched, h)
		default:
			children = append(children, h)
		}
		if writesObjects(h) {
			writing = append(writing, h)
		}
		if isParent(h) && !h.ParentHandler.AllowAnyObject {
			parents = append(parents, h)
		}
	}
	if r.HasStatus() {
		withStatus = writing
	}
	for _, one := range []struct {
		by       []*handlers.Handler
		feature  string
		resource string
		verbs    []string
		optional bool
		without  string
	}{
		// Children of Owns are made by Ensure, so they need the verbs of both.
		{children, "children of Owns", r.Plural, []string{"get", "list", "watch", "create", "patch", "delete"}, false,
			"the log names the kind, and Ensure returns an error"},
		{own, "handled objects", r.Plural, []string{"list", "watch"}, false,
			"the log names the kind, and its handlers wait"},
		{watched, "Watches and WaitFor", r.Plural, []string{"list", "watch"}, false,
			"the log names the kind, and waits last"},
		{writing, "annotations, finalizers and patches", r.Plural, []string{"get", "patch"}, false, retried},
		{withStatus, "the status", r.Plural + "/status", []string{"patch"}, false, "the status stays as it is"},
		{parents, "owner references of children", r.Plural + "/finalizers", []string{"update"}, true,
			"API servers that check owner references, as that of OpenShift does, refuse the children"},
	} {
		if len(one.by) > 0 {
			c.add(Need{
				Rule: rule(r.Group, one.resource, one.verbs...), Scope: scopeOf(r), Feature: one.feature,
				Handlers: one.by, Without: one.without, Optional: one.optional,
			})
		}
	}
}

// isParent reports whether the objects of the handler have children that the operator watches.
func isParent(h *handlers.Handler) bool { return h.ParentHandler != nil && h.ParentHandler != h }

// writesObjects reports whether the operator writes to objects for the handler. Indices are in memory.
func writesObjects(h *handlers.Handler) bool {
	return isParent(h) || h.WritesObjects() && h.Index == nil
}

// addCachedReads adds the kinds that handlers read from a cache.
func (c *collector) addCachedReads() {
	for _, kind := range c.operator.CachedReads {
		for _, r := range c.resolve(discovery.OfKind(kind), nil) {
			c.add(Need{
				Rule: rule(r.Group, r.Plural, "list", "watch"), Scope: scopeOf(r), Feature: "CachedReads",
				Without: "reads of the kind wait",
			})
		}
	}
}

// addCluster adds the needs for CRDs, namespaces and Kubernetes events.
func (c *collector) addCluster() {
	dependsOnCRDs := func(one HandlerNeeds) bool { return one.Selector.DependsOnCRDs() }
	if !c.operator.ScanOnce && slices.ContainsFunc(c.operator.Handlers, dependsOnCRDs) {
		c.add(Need{
			Rule:  rule("apiextensions.k8s.io", "customresourcedefinitions", "list", "watch"),
			Scope: WholeCluster, Feature: "changes of CRDs", Optional: true,
			Without: "new and removed kinds are noticed after up to five minutes",
		})
	}
	if _, plain := c.operator.Namespaces.PlainNames(); !plain && !c.operator.ScanOnce {
		c.add(Need{
			Rule: rule("", "namespaces", "list", "watch"), Scope: WholeCluster, Feature: "patterns of namespaces",
			Without: "only namespaces that are named in full are served",
		})
	}
	if c.operator.NoEvents || len(c.operator.Handlers) == 0 {
		return
	}
	events := Need{
		Rule: rule("", "events", "create", "patch"), Scope: ServedNamespaces, Feature: "Kubernetes events",
		Optional: true, Without: "events are logged only",
	}
	c.add(events)
	// Events about cluster-scoped objects belong to the namespace of the operator's credentials.
	if slices.ContainsFunc(c.needs, func(n Need) bool { return n.Scope == WholeCluster && len(n.Handlers) > 0 }) {
		events.Scope = OneNamespace
		c.add(events)
	}
}

// addPeering adds the needs of peering. Both groups are those in which the operator looks for its peering object.
func (c *collector) addPeering() {
	o := c.operator
	if o.Peering == "" {
		return
	}
	plural, scope := "clusterkopfpeerings", WholeCluster
	if len(o.Namespaces) > 0 && !o.PeeringClusterwide {
		plural, scope = "kopfpeerings", ServedNamespaces
	}
	for _, needed := range []rbacv1.PolicyRule{
		rule("kopf.dev", plural, "get", "list", "watch", "patch"), rule("kopf.dev", plural+"/status", "patch"),
	} {
		needed.APIGroups = append(needed.APIGroups, "zalando.org")
		needed.ResourceNames = []string{o.Peering}
		c.add(Need{
			Rule: needed, Scope: scope, Feature: "peering", Optional: o.PeeringOptional,
			Without: "the operator acts as without peering; with Peering.Mandatory, it waits",
		})
	}
	// Without a namespace, the events about pauses are in the namespace "default".
	if !o.NoEvents && scope == WholeCluster {
		c.add(Need{
			Rule: rule("", "events", "create"), Scope: OneNamespace, Namespace: "default",
			Feature: "events of peering", Optional: true, Without: "pauses are logged only",
		})
	}
}

// addAdmission adds the needs for managed webhook configurations and for the certificate.
func (c *collector) addAdmission() {
	var reviewing []*handlers.Handler
	for _, one := range c.operator.Handlers {
		if registry.IsAdmissionHandler(one.Handler) {
			reviewing = append(reviewing, one.Handler)
		}
	}
	if name := c.operator.Managed; name != "" {
		both := rbacv1.PolicyRule{
			APIGroups: []string{"admissionregistration.k8s.io"}, Verbs: []string{"create"},
			Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
		}
		need := Need{
			Rule: both, Scope: WholeCluster, Feature: "Admission.Managed", Handlers: reviewing,
			Without: "the log has the error, and the operator tries again",
		}
		c.add(need) // RBAC cannot restrict this verb to names
		need.Rule.Verbs, need.Rule.ResourceNames = []string{"get", "patch", "watch", "update"}, []string{name}
		c.add(need)
	}
	if secret := c.operator.Secret; secret.Name != "" && len(reviewing) > 0 {
		need := Need{
			Rule: rule("", "secrets", "create"), Scope: OneNamespace, Namespace: secret.Namespace,
			Feature: "Admission.Secret", Handlers: reviewing,
			Without: "the operator answers no admission requests, and is not ready",
		}
		c.add(need)
		need.Rule.Verbs, need.Rule.ResourceNames = []string{"get", "update"}, []string{secret.Name}
		c.add(need)
	}
}

// addLeases adds the needs of the Lease that elects the leader, or of those by which the replicas share the objects:
// their names contain those of the pods, so a rule cannot have them.
func (c *collector) addLeases() {
	if c.operator.Shards > 0 {
		c.add(Need{
			Rule:  rule("coordination.k8s.io", "leases", "get", "list", "create", "update", "delete"),
			Scope: OneNamespace, Feature: "sharding", Without: "no handlers are called, and the operator is not ready",
		})
	}
	if c.operator.LeaderElection {
		c.add(Need{
			Rule:  rule("coordination.k8s.io", "leases", "get", "create", "update"),
			Scope: OneNamespace, Feature: "leader election", Optional: true,
			Without: "each replica acts: run one",
		})
	}
}

// addMetrics adds the needs of metrics with authentication.
func (c *collector) addMetrics() {
	if !c.operator.MetricsSecure {
		return
	}
	for _, needed := range []rbacv1.PolicyRule{
		rule("authentication.k8s.io", "tokenreviews", "create"),
		rule("authorization.k8s.io", "subjectaccessreviews", "create"),
	} {
		c.add(Need{
			Rule: needed, Scope: WholeCluster, Feature: "metrics with authentication",
			Without: "all requests for the metrics are refused",
		})
	}
}

// addDeclared adds the declared rules. A rule for several resources becomes one for each scope.
func (c *collector) addDeclared() {
	for _, declared := range c.operator.Declared {
		scopes := map[Scope][]string{}
		for _, resource := range declared.Resources {
			scope, known := c.scopeOfDeclared(declared.APIGroups, resource)
			if !known {
				c.unresolved = append(c.unresolved, Unresolved{Rule: &declared})
			}
			scopes[scope] = append(scopes[scope], resource)
		}
		need := Need{Feature: "declared by Needs", Without: "requests of handlers fail"}
		if len(declared.NonResourceURLs) > 0 {
			need.Rule, need.Scope = declared, WholeCluster
			c.add(need)
		}
		for _, scope := range []Scope{ServedNamespaces, WholeCluster} {
			if resources := scopes[scope]; len(resources) > 0 {
				need.Rule, need.Scope = *declared.DeepCopy(), scope
				need.Rule.Resources = resources
				c.add(need)
			}
		}
	}
}

// scopeOfDeclared returns the scope of a resource in a declared rule. A resource of several groups has the wider scope.
// A resource with a wildcard is known, and has the scope of the operator.
func (c *collector) scopeOfDeclared(groups []string, resource string) (scope Scope, known bool) {
	plural, _, _ := strings.Cut(resource, "/")
	if plural == "*" || slices.Contains(groups, "*") {
		return ServedNamespaces, true
	}
	for _, r := range c.served {
		if r.Plural == plural && slices.Contains(groups, r.Group) {
			scope, known = max(scope, scopeOf(r)), true
		}
	}
	return scope, known
}
