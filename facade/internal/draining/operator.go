package draining

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// StoredState describes what an operator stores in a cluster, and where.
type StoredState struct {
	// Name is the name of the operator, which is also its field manager.
	Name string
	// Prefix is the domain of its annotations, and Finalizer is the full name of its finalizer.
	Prefix, Finalizer string
	// Shared is true if other operators may use the same prefix and finalizer, as with AsKopf.
	Shared bool
	// Diffbase and Progress are its storages.
	Diffbase diffbase.Storage
	Progress progress.Storage
	// Kinds are the handled kinds. Children are the kinds of the children that it watches.
	Kinds    []StoredKind
	Children []discovery.Selector
	// Webhooks is the name of its managed webhook configurations; empty if there are none. With KopfWebhooks, all
	// entries in them are those of the operator.
	Webhooks     string
	KopfWebhooks bool
	// Peering is its place among its peers.
	Peering PeeringPlace
	// Patterns are the namespaces of its settings; none means the whole cluster.
	Patterns namespaces.Patterns
}

// StoredKind is a kind with the ids of its handlers, and of former ones, that store records.
type StoredKind struct {
	Selector discovery.Selector
	IDs      []string
}

// PeeringPlace describes the peering of an operator.
type PeeringPlace struct {
	// Name is the name of the peering objects. Clusterwide is true if the cluster-scoped object is used even if the
	// operator serves namespaces. Standalone is true if the operator ignores its peers.
	Name                    string
	Clusterwide, Standalone bool
	// Identity is the configured identity; by default, each process has its own, and it is empty.
	Identity string
}

// Drain is a request to remove, or to list, everything that an operator has stored.
type Drain struct {
	StoredState

	// Namespaces are the namespaces to drain; none means the whole cluster. Cluster-scoped objects are always included.
	Namespaces namespaces.Patterns
	// LeaseName is the name of the Lease, if it is not the default.
	LeaseName string
	// Check only lists, and changes nothing.
	Check bool
	// KeepMemory keeps the annotations and fields on objects, so that a later installation continues with them.
	KeepMemory bool
	// SharedToo also removes what operators with the same prefix share: the finalizer, the last-handled configuration.
	SharedToo bool
	// SkipDeletions releases objects that are being deleted without their delete handlers. By default, they are left.
	SkipDeletions bool
	// RunDeletions runs the operator for objects that are being deleted, until the context ends; nil to leave them.
	// DeletionTimeout limits it.
	RunDeletions    func(ctx context.Context) error
	DeletionTimeout time.Duration
	// Freeze pauses the running operators of the peering first. By default, a running one is an error.
	Freeze bool
	// Confirm is called if it is unknown whether the operator is running, with the reason. An error ends the drain.
	Confirm func(reason string) error
}

// mayRemoveShared reports whether the things that operators can share are removed.
func (d *Drain) mayRemoveShared() bool { return !d.Shared || d.SharedToo }

// run is one execution of a drain.
type run struct {
	*Drain
	*clusterops.Cluster
	*results

	places       []string // namespaces; "" is the whole cluster
	metadataOnly bool     // the storages of the operator use annotations only
	childKinds   map[schema.GroupKind]bool
	current      *atomic.Pointer[string] // the resource that is being drained, for the log
}

// repeatEvery calls the function at intervals until the context ends.
func repeatEvery(ctx context.Context, interval time.Duration, do func()) {
	_ = wait.PollUntilContextCancel(ctx, interval, false, func(context.Context) (bool, error) {
		do()
		return false, nil
	})
}
