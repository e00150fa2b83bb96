package attendance

import (
	"cmp"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// Peer is a record in a peering object, as it was seen last.
type Peer struct {
	Identity string `json:"identity"`
	// Own is that of the operator itself.
	Own bool `json:"own,omitempty"`
	// Namespace is that of the peering object; empty for one of the cluster.
	Namespace string `json:"namespace,omitempty"`
	Priority  int    `json:"priority"`
	// LastSeen is when the record was written, by the clock of its operator; Until is how long it is good.
	LastSeen time.Time `json:"lastSeen"`
	Until    time.Time `json:"until"`
	// Runtime is empty for operators of Kopf.
	Runtime string `json:"runtime,omitempty"`
	// Busy is how many attempts its operator says to be running, and one more while it may start any; nil is unknown.
	Busy *int `json:"busy,omitempty"`
}

// Peers are all records that are known, without asking anybody: of all peering objects, by namespace and identity.
func (a *Attendance) Peers() (all []Peer) {
	a.seeing.Lock()
	defer a.seeing.Unlock()
	for at, here := range a.seen {
		own := here.Self()
		for identity, record := range here.Records() {
			all = append(all, Peer{
				Identity: identity, Own: identity == own.Identity, Namespace: at.namespace, Priority: record.Priority,
				LastSeen: record.LastSeen.UTC(), Until: record.Expires().UTC(), Runtime: record.Runtime,
				Busy: record.Busy,
			})
		}
	}
	slices.SortFunc(all, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Identity, b.Identity))
	})
	return all
}

// show has the records of a place be known; nil is of a place that there is no more.
func (a *Attendance) show(at place, here *peering.Membership) {
	a.seeing.Lock()
	defer a.seeing.Unlock()
	if here == nil {
		delete(a.seen, at)
		return
	}
	a.seen[at] = here
}
