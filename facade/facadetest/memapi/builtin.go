package memapi

import (
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// builtInScheme returns a scheme with the kinds of client-go and CustomResourceDefinitions. It does not have the kinds
// that a program has added to the scheme of client-go.
var builtInScheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	return s
})

// builtInKind describes a kind that is built into Kubernetes.
type builtInKind struct {
	version, kind, plural, short string
	// properties lists the properties of the kind, separated by spaces: "cluster" for a cluster-scoped kind, "all" for
	// the category all, "status" for a status subresource, "counted" for kinds with a generation, "strict" for kinds
	// whose updates must have a resource version. Names must be DNS subdomains, unless the properties contain "label"
	// (DNS labels) or "segment" (any path segment).
	properties string
	// generationField names the metadata field whose changes increase the generation, as those of the spec do.
	generationField string
}

// builtInKinds are the built-in kinds that operators use most. The properties are those of the real server.
var builtInKinds = []builtInKind{
	{"v1", "ConfigMap", "configmaps", "cm", "", ""},
	{"v1", "Endpoints", "endpoints", "ep", "", ""},
	{"v1", "Event", "events", "ev", "segment", ""},
	{"v1", "LimitRange", "limitranges", "limits", "", ""},
	{"v1", "Namespace", "namespaces", "ns", "cluster status label", ""},
	{"v1", "Node", "nodes", "no", "cluster status", ""},
	{"v1", "PersistentVolume", "persistentvolumes", "pv", "cluster status", ""},
	{"v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "status", ""},
	{"v1", "Pod", "pods", "po", "status all", ""},
	{"v1", "ResourceQuota", "resourcequotas", "quota", "status", ""},
	{"v1", "Secret", "secrets", "", "", ""},
	{"v1", "Service", "services", "svc", "status all label", ""},
	{"v1", "ServiceAccount", "serviceaccounts", "sa", "", ""},
	{"apps/v1", "DaemonSet", "daemonsets", "ds", "status counted all", ""},
	{"apps/v1", "Deployment", "deployments", "deploy", "status counted all", "annotations"},
	{"apps/v1", "ReplicaSet", "replicasets", "rs", "status counted all", ""},
	{"apps/v1", "StatefulSet", "statefulsets", "sts", "status counted all label", ""},
	{"autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "status all", ""},
	{"batch/v1", "CronJob", "cronjobs", "cj", "status counted all", ""},
	{"batch/v1", "Job", "jobs", "", "status counted all", ""},
	{"coordination.k8s.io/v1", "Lease", "leases", "", "strict", ""},
	{"discovery.k8s.io/v1", "EndpointSlice", "endpointslices", "", "counted", "labels"},
	{"events.k8s.io/v1", "Event", "events", "ev", "", ""},
	{"networking.k8s.io/v1", "Ingress", "ingresses", "ing", "status counted", ""},
	{"networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol", "counted", ""},
	{"policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "status counted strict segment", ""},
	{"rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "", "cluster segment", ""},
	{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", "", "cluster segment", ""},
	{"rbac.authorization.k8s.io/v1", "Role", "roles", "", "segment", ""},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", "", "segment", ""},
	{"storage.k8s.io/v1", "StorageClass", "storageclasses", "sc", "cluster", ""},
}

// BuiltIn returns the kinds that a server of [New] serves from the start: those that operators use most. Their names,
// scope, status subresource, generations, update rules and server-side apply are those of the real server.
// Everything else is missing. Objects are stored without defaults and validation. No controller creates the pods of a
// deployment. Deleting a job does not orphan its pods by default. Roles and quotas do not have an effect. For other
// kinds, see [Server.Install].
func BuiltIn() []Resource {
	// Custom resource definitions are a built-in kind as well.
	all := []Resource{definitionsResource}
	for _, n := range builtInKinds {
		r := Resource{
			Kind: n.kind, Plural: n.plural, Namespaced: !n.hasProperty("cluster"),
			StatusSubresource: n.hasProperty("status"),
			Plain:             !n.hasProperty("counted"),
			Group:             n.groupVersion().Group,
			Version:           n.groupVersion().Version,
		}
		if n.short != "" {
			r.ShortNames = []string{n.short}
		}
		if n.hasProperty("all") {
			r.Categories = []string{"all"}
		}
		all = append(all, r)
	}
	return all
}

// hasProperty reports whether the kind has the property.
func (n builtInKind) hasProperty(word string) bool {
	return slices.Contains(strings.Fields(n.properties), word)
}

// groupVersion parses the version. It panics if the table of this file is wrong.
func (n builtInKind) groupVersion() schema.GroupVersion {
	gv, err := schema.ParseGroupVersion(n.version)
	if err != nil {
		panic(err)
	}
	return gv
}

// nativeKind returns the description of a built-in kind.
func (t target) nativeKind() (builtInKind, bool) {
	for _, n := range builtInKinds {
		// The version is not compared: kinds of the same group share their properties.
		if n.kind == t.Kind && n.groupVersion().Group == t.Group {
			return n, true
		}
	}
	return builtInKind{}, false
}

// allowsBlindUpdate reports whether an object of the kind can be updated without a resource version. Custom resources
// always need one.
func (t target) allowsBlindUpdate() bool {
	n, ok := t.nativeKind()
	return ok && !n.hasProperty("strict") || !ok && t.Plain
}

// eventFields maps field names of the newer API to those of the core API. Events are stored in the form of the core
// API.
var eventFields = map[string]string{
	"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent",
	"deprecatedSource": "source", "deprecatedFirstTimestamp": "firstTimestamp",
	"deprecatedLastTimestamp": "lastTimestamp", "deprecatedCount": "count",
}

// isNewEvent reports whether the request uses the newer API of events.
func (t target) isNewEvent() bool { return t.Group == eventsGroup && t.Plural == "events" }

// renameEvent converts an event in place: to the stored form if stored is set, else to the newer API.
func renameEvent(object map[string]any, stored bool) {
	for name, older := range eventFields {
		from, to := older, name
		if stored {
			from, to = name, older
		}
		if value, ok := object[from]; ok {
			delete(object, from)
			object[to] = value
		}
	}
}
