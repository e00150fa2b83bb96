package peering

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// PeerVerdict is the result of [JudgeRecords]: the demands of the peers' records. All lists are sorted by identity.
type PeerVerdict struct {
	// Blockers are the live peers for which the operator must pause.
	Blockers []string
	// EqualPeers are the blockers of the same priority, which pause as well.
	EqualPeers []string
	// ActingPeers are the live peers of this framework that pause for the operator, but are not idle yet.
	ActingPeers []string
	// SilentPeers are the live peers that pause for the operator, and do not report when they are idle, such as those
	// of Kopf.
	SilentPeers []string
	// Expired are the identities of records that have ended. The operator's own can be among them.
	Expired []string
	// Wake is when the first blocker expires unless it renews its record. It is zero without blockers.
	Wake time.Time
}

// IsPaused reports whether the operator must pause for a peer.
func (v PeerVerdict) IsPaused() bool { return len(v.Blockers) > 0 }

// Self is the operator in its own view.
type Self struct {
	// Identity is the key of its record.
	Identity string
	// Priority is its priority. The one in its record is ignored.
	Priority int
	// Group is the same for replicas that share the objects. They do not pause for each other. It may be empty.
	Group string
	// Elects lets the smallest identity act among peers of this framework with the same priority. Otherwise, and beside
	// peers of Kopf, all of them pause, as in Kopf.
	Elects bool
}

// JudgeRecords returns the demands of all records in a peering object. The result depends only on the records and the
// time, so all operators reach the same decision from the same records.
func JudgeRecords(self Self, records map[string]PeerRecord, now time.Time) (v PeerVerdict) {
	// The order makes the lists comparable: callers detect changes by them.
	for _, identity := range slices.Sorted(maps.Keys(records)) {
		record := records[identity]
		switch {
		// A record ends at its last moment, not after it: Kopf compares in the same way.
		case !record.ExpiresAt().After(now):
			v.Expired = append(v.Expired, identity)
			continue
		case identity == self.Identity, self.sharesObjects(record):
			continue
		case record.Priority < self.Priority || self.takesPrecedence(identity, record):
			v.addYieldingPeer(identity, record)
			continue
		case record.Priority == self.Priority:
			v.EqualPeers = append(v.EqualPeers, identity)
		}
		v.Blockers = append(v.Blockers, identity)
		if expires := record.ExpiresAt(); v.Wake.IsZero() || expires.Before(v.Wake) {
			v.Wake = expires
		}
	}
	return v
}

// addYieldingPeer adds a peer that must pause for the operator, unless it reports that it is idle already. Records of
// Kopf do not have the fields for that.
func (v *PeerVerdict) addYieldingPeer(identity string, record PeerRecord) {
	switch {
	case record.Runtime == "" || record.Busy == nil:
		v.SilentPeers = append(v.SilentPeers, identity)
	case !record.isIdle():
		v.ActingPeers = append(v.ActingPeers, identity)
	}
}

// sharesObjects reports whether the peer is a replica that handles other objects than this one. A replica of another
// priority is not: an operator pauses as a whole.
func (s Self) sharesObjects(record PeerRecord) bool {
	return s.Group != "" && record.Group == s.Group && record.Priority == s.Priority
}

// takesPrecedence reports whether the operator acts rather than a peer of the same priority. Replicas that share the
// objects act together, so their group counts instead of their identities.
func (s Self) takesPrecedence(identity string, record PeerRecord) bool {
	return s.Elects && record.Runtime != "" && record.Priority == s.Priority &&
		cmp.Or(s.Group, s.Identity) < cmp.Or(record.Group, identity)
}
