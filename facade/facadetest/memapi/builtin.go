package memapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// native is a kind of Kubernetes itself.
type native struct {
	version, kind, plural, short string
	// is what it is: cluster, without a namespace; all, of that category; status, with a subresource for it; counted,
	// with generations; strict, refusing an update without a version. Names are DNS subdomains, unless it is label, for
	// DNS labels, or segment, for all that can be a part of a path.
	is string
	// counts is the part of the metadata that makes another generation when it changes.
	counts string
}

// natives are the kinds that operators work with.
var natives = []native{
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

// BuiltIn are the kinds of Kubernetes itself that a server of [New] has from its beginning: those that operators work
// with. Of these, the names, the scope, the subresource for the status, generations, the rules for updates, and
// server-side apply are those of the real server. All else is not there: objects are stored as they come, without
// defaults and validation, no controller makes pods of a deployment, the pods of a job are not orphaned by default when
// it is deleted, and nothing follows from a role or a quota. For other kinds, see [Server.Install].
func BuiltIn() []Resource {
	all := []Resource{definitionsResource}
	for _, n := range natives {
		r := Resource{
			Kind: n.kind, Plural: n.plural, Namespaced: !n.has("cluster"), StatusSubresource: n.has("status"),
			Plain: !n.has("counted"), Group: n.groupVersion().Group, Version: n.groupVersion().Version,
		}
		if n.short != "" {
			r.ShortNames = []string{n.short}
		}
		if n.has("all") {
			r.Categories = []string{"all"}
		}
		all = append(all, r)
	}
	return all
}

func (n native) has(word string) bool { return slices.Contains(strings.Fields(n.is), word) }

func (n native) groupVersion() schema.GroupVersion {
	gv, err := schema.ParseGroupVersion(n.version)
	if err != nil {
		panic(err)
	}
	return gv
}

// native finds the kind among those of Kubernetes itself.
func (t target) native() (native, bool) {
	for _, n := range natives {
		if n.kind == t.Kind && n.groupVersion().Group == t.Group {
			return n, true
		}
	}
	return native{}, false
}

// unconditional is true for kinds that may be updated without saying which version was seen.
func (t target) unconditional() bool {
	n, ok := t.native()
	return ok && !n.has("strict") || !ok && t.Plain
}
