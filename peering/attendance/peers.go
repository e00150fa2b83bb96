package attendance

import (
	"cmp"
	"slices"
	"time"
)

// Peer is a record in a peering object, as it was last seen. It is encoded for the console.
type Peer struct {
	Identity string `json:"identity"`
	// IsOwn is true for the record of the operator itself.
	IsOwn bool `json:"own,omitempty"`
	// Namespace is the namespace of the peering object. It is empty for a ClusterKopfPeering.
	Namespace string `json:"namespace,omitempty"`
	Priority  int    `json:"priority"`
	// LastSeen is when the record was written, by the clock of its operator. Until is when it ends.
	LastSeen time.Time `json:"lastSeen"`
	Until    time.Time `json:"until"`
	// Runtime is empty for operators of Kopf.
	Runtime string `json:"runtime,omitempty"`
	// Busy is the number of running attempts that the operator reports, plus one while it may start more. Nil is
	// unknown.
	Busy *int `json:"busy,omitempty"`
}

// KnownPeers returns all known records of all peering objects, sorted by namespace and identity. It makes no requests.
func (a *Attendance) KnownPeers() (all []Peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, here := range a.places {
		own := here.Self()
		for identity, record := range here.NewestRecords() {
			all = append(all, Peer{
				Identity: identity, IsOwn: identity == own.Identity, Namespace: at.namespace, Priority: record.Priority,
				LastSeen: record.LastSeen.UTC(), Until: record.ExpiresAt().UTC(), Runtime: record.Runtime,
				Busy: record.Busy,
			})
		}
	}
	slices.SortFunc(all, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Identity, b.Identity))
	})
	return all
}

// PeersDecide reports whether the records of a peering object decide who acts. Without any, this operator acts as if it
// were alone. The answer is unknown until the kinds were searched, and the API server has answered for all objects.
func (a *Attendance) PeersDecide() (decide, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known = a.ready.Load()
	for _, here := range a.places {
		published, answered := here.IsPublished()
		decide, known = decide || published, known && answered
	}
	return decide, known || decide
}
