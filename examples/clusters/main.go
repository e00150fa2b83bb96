// Command clusters manages Kubernetes clusters. Networks and control planes are in a cloud; nodes are in pools, which
// are objects of their own. The example has the size of a real operator: 18 handlers for four kinds.
package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/clusters/api/v1"
	"github.com/kopf-runtime/kopf-runtime/examples/clusters/cloud"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	Change     = kopf.Change[*v1.Cluster]
	Run        = kopf.Task[*v1.Cluster]
	PoolChange = kopf.Change[*v1.NodePool]
)

// The parts of the cloud's API that the handlers use.
type (
	networks interface {
		EnsureNetwork(ctx context.Context, cluster, cidr string) (id string, err error)
		AllowFrom(ctx context.Context, cluster string, ranges []string) error
		DeleteNetwork(ctx context.Context, cluster string) error
	}
	controlPlanes interface {
		EnsureControlPlane(ctx context.Context, cluster, version string) (cloud.ControlPlane, error)
		DeleteControlPlane(ctx context.Context, cluster string) error
		Snapshot(ctx context.Context, cluster string) (id string, err error)
	}
	incidents interface {
		Incidents(cluster string) <-chan string
	}
)

// operator has the data that the handlers share.
type operator struct {
	networks  networks
	planes    controlPlanes
	incidents incidents

	pools          *kopf.Index[string, string] // names of pools, by cluster
	nodes          *kopf.Index[string, node]   // by pool
	degradedChecks *kopf.Memo[int]             // how often in a row a cluster was found without some of its nodes
}

// retryPolicy is for handlers that wait for slow operations.
var retryPolicy = kopf.JoinOptions(kopf.Retries(100), kopf.Timeout(10*time.Minute), kopf.Backoff(2*time.Second))

func main() {
	op := kopf.New("clusters.example.org", kopf.Settings{
		AddToScheme: []func(*runtime.Scheme) error{v1.AddToScheme},
		CachedReads: []client.Object{&v1.NodePool{}},
		Queueing:    kopf.QueueingSettings{WorkerLimit: 20},
		Execution:   kopf.ExecutionSettings{DefaultBackoff: 5 * time.Second},
		Background:  kopf.BackgroundSettings{MaxConcurrentTicks: 50},
		Networking:  kopf.NetworkingSettings{ErrorBackoffs: []time.Duration{time.Second, 3 * time.Second}},
		Persistence: kopf.PersistenceSettings{IgnoredFields: []string{`metadata.labels."` + v1.LabelPaused + `"`}},
	})
	register(op, cloud.New())
	kopf.Main(op)
}

func register(op *kopf.Operator, c *cloud.Cloud) {
	clusters, pools := kopf.For(op, &v1.Cluster{}), kopf.For(op, &v1.NodePool{})
	// Built-in kinds are handled like custom ones. The filters select the objects that the operator has created.
	nodes := kopf.For(op, &corev1.Node{}).WithLabel(v1.LabelPool, kopf.Present)
	namespaces := kopf.For(op, &corev1.Namespace{}).WithLabel(v1.LabelCluster, kopf.Present)

	o := &operator{
		networks: c, planes: c, incidents: c,
		pools:          kopf.NewIndex(pools, "pools", byCluster),
		nodes:          kopf.NewIndex(nodes, "nodes", byPool),
		degradedChecks: kopf.NewMemo[int](clusters),
	}
	o.registerChanges(clusters)
	o.registerBackground(clusters)

	// One function handles all reasons. A deletion is scaling to zero nodes.
	pools.On("nodes", append(kopf.CreateUpdateResume(), kopf.ReasonDelete), o.scale, retryPolicy)
	nodes.OnEvent("role", giveRole)
	namespaces.On("security", kopf.CreateUpdateResume(), secure)

	// The requests of handlers by Client, for the command manifests.
	op.Needs(
		allow("", []string{"namespaces", "secrets", "configmaps"}, "get", "create", "patch", "delete"),
		allow("", []string{"nodes"}, "get", "list", "create", "patch", "delete"),
		allow("", []string{"nodes/status"}, "patch"),
		allow("clusters.example.org", []string{"nodepools"}, "get", "create", "patch", "delete"),
		allow("clusters.example.org", []string{"clusters/finalizers"}, "update"),
	)
}

func allow(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// registerChanges registers the handlers in the order in which they are called. Handlers that depend on others read
// their results, and are retried until these results exist.
func (o *operator) registerChanges(clusters kopf.Selection[*v1.Cluster]) {
	clusters.OnCreate("network", o.createNetwork, retryPolicy)
	clusters.OnCreate("controlPlane", o.createControlPlane, retryPolicy)
	clusters.OnCreate("namespace", createNamespace)
	clusters.On("kubeconfig", kopf.CreateUpdateResume(), writeKubeconfig, retryPolicy)
	clusters.OnField("nodes", "spec.nodes", resize, retryPolicy)
	clusters.OnField("addons", "spec.addons", installAddons, retryPolicy)

	// With OldValue, they are called for changes only. Without it, they would be called for new clusters as well.
	clusters.OnField("version", "spec.version", o.upgrade, kopf.OldValue(kopf.Present))
	clusters.OnField("network", "spec.network", o.changeNetwork, kopf.OldValue(kopf.Present))
	clusters.OnUpdate("audit", audit, kopf.WhenChange(touchesSpec))
	clusters.OnResume("reconnect", o.reconnect, retryPolicy)

	clusters.OnDelete("teardown", o.teardown)
	clusters.OnDelete("farewell", sayFarewell, kopf.Optional())
}

// registerBackground registers timers and daemons. They do not run for clusters with the label for pauses.
func (o *operator) registerBackground(clusters kopf.Selection[*v1.Cluster]) {
	active := clusters.WithLabel(v1.LabelPaused, kopf.Absent)
	active.Timer("health", 2*time.Second, o.checkHealth, kopf.Sharp(), kopf.Jitter(0.1))
	active.WithAnnotation(v1.AnnotationBackup, "enabled").Timer("backup", 0, o.backUp, kopf.Idle(3*time.Second))
	active.Daemon("incidents", o.reportIncidents, kopf.CancelTimeout(10*time.Second))
}
