package program

import (
	"cmp"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/election"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Elects reports whether a Lease decides which replica of a program acts, unless there is a peering object. With
// --leader-elect=auto, this is the case in pods, but not for operators that must not wait for others, or that follow
// the rules of Kopf.
func (c *Coordination) Elects(by CoordinationSettings) bool {
	return c.HasOwnManager && !c.Embedded && ElectsInPod(by) &&
		(by.ElectionFlags.Mode == serving.ElectAlways || c.podNamespace(by) != "")
}

// ElectsInPod reports the same for a program in a pod.
func ElectsInPod(by CoordinationSettings) bool {
	switch {
	case by.Peering.Mandatory, by.IsSharded():
		return false
	case by.ElectionFlags.Mode == serving.ElectAlways:
		return true
	}
	return by.ElectionFlags.Mode == serving.ElectAuto && !by.Peering.Standalone && !by.Peering.KopfRules
}

// podNamespace returns the namespace of the pod, or "" outside of pods and with a kubeconfig.
func (c *Coordination) podNamespace(by CoordinationSettings) string {
	if by.Cluster.SelectsFile() {
		return ""
	}
	if c.PodNamespace != nil {
		return c.PodNamespace()
	}
	return credentials.PodNamespace()
}

// leaseOf returns the namespace and the name of the Lease.
func (c *Coordination) leaseOf(by CoordinationSettings) types.NamespacedName {
	namespace := c.podNamespace(by)
	if namespace == "" && by.DefaultNamespace != nil {
		namespace = by.DefaultNamespace()
	}
	scope := by.ServedNamespaces
	name := election.LeaseName(c.Operator, scope.ServedPatterns().Texts(), scope.LabelSelector())
	return types.NamespacedName{
		Namespace: cmp.Or(namespace, "default"),
		Name:      cmp.Or(by.ElectionFlags.ID, name),
	}
}

// addElection makes the operator take part in the election of its replicas. Present is its attendance among peers; nil
// without peers.
func (c *Coordination) addElection(
	m ctrl.Manager, options *reconcilers.Options, gate *peering.CombinedGate, by CoordinationSettings,
	present *peering.Attendance, peers *peersGate,
) error {
	o := election.Options{
		Lease: c.leaseOf(by), Identity: c.processIdentity(),
		Gate: gate, Busy: options.Gate.Busy, OnTakeover: options.Gate.NoteTakeover,
		Optional: by.ElectionFlags.Mode == serving.ElectAuto,
	}
	if present != nil {
		o.PeersDecide, o.PeersPause = present.PeersDecide, peers.closed.Load
	}
	own, err := election.New(m.GetConfig(), m.GetHTTPClient(), o)
	if err != nil {
		return err
	}
	options.StartExtraWork = combineBackground(options.StartExtraWork, own.Begin)
	options.Standby = own.DescribeStandby
	return m.AddReadyzCheck(c.Operator+"/election", func(*http.Request) error { return own.CheckReady() })
}

// processIdentity returns a name of this process that begins with that of its pod, and is new with each start.
func (c *Coordination) processIdentity() string {
	host, _ := os.Hostname() // the identity is unique without it
	return cmp.Or(os.Getenv("POD_ID"), host, c.Operator) + "_" + string(uuid.NewUUID())
}

// peersGate stores whether the peers demand a pause.
type peersGate struct{ closed atomic.Bool }

var _ peering.WriteGate = (*peersGate)(nil)

// Set stores the state.
func (g *peersGate) Set(closed bool) { g.closed.Store(closed) }

// AllowWritesUntil does nothing: the gate of the operator has the limit.
func (*peersGate) AllowWritesUntil(time.Time) {}
