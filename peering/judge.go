package peering

import (
	"maps"
	"slices"
	"time"
)

// Verdict is what an operator must do about its peers.
type Verdict struct {
	// Blockers are the identities of the live peers that it must pause for, sorted; empty if it may act.
	Blockers []string
	// Equals are those among the blockers that have the same priority, and pause as well.
	Equals []string
	// Acting are the live peers of ours that pause for it, but are not at rest yet, sorted.
	Acting []string
	// Untold are the live peers that pause for it, and do not say when they are at rest, as those of Kopf; sorted.
	Untold []string
	// Dead are the identities whose records are good no more, sorted; its own may be among them.
	Dead []string
	// Wake is when the first of the blockers expires, if it says nothing of itself until then.
	Wake time.Time
}

// Paused tells whether the operator must not act.
func (v Verdict) Paused() bool { return len(v.Blockers) > 0 }

// Self is the operator that looks at its peers.
type Self struct {
	// Identity is its key among the records.
	Identity string
	// Priority is that which counts, whatever its record says.
	Priority int
	// Elects lets the smallest identity act among peers of one priority that say to be of a runtime of ours. Otherwise,
	// and beside peers of Kopf, all of one priority pause, as in Kopf.
	Elects bool
}

// Judge decides by the records of a peering object. Only these and the time count, so all who see the same records
// decide alike.
func Judge(self Self, records map[string]Record, now time.Time) (v Verdict) {
	for _, identity := range slices.Sorted(maps.Keys(records)) {
		record := records[identity]
		switch {
		case !record.Expires().After(now):
			v.Dead = append(v.Dead, identity)
			continue
		case identity == self.Identity:
			continue
		case record.Priority < self.Priority || self.precedes(identity, record):
			v.follow(identity, record)
			continue
		case record.Priority == self.Priority:
			v.Equals = append(v.Equals, identity)
		}
		v.Blockers = append(v.Blockers, identity)
		if expires := record.Expires(); v.Wake.IsZero() || expires.Before(v.Wake) {
			v.Wake = expires
		}
	}
	return v
}

// follow notes a peer that pauses for the operator.
func (v *Verdict) follow(identity string, record Record) {
	switch {
	case record.Runtime == "" || record.Busy == nil:
		v.Untold = append(v.Untold, identity)
	case !record.atRest():
		v.Acting = append(v.Acting, identity)
	}
}

// precedes tells whether the operator is the one that acts of two of the same priority.
func (s Self) precedes(identity string, record Record) bool {
	return s.Elects && record.Runtime != "" && record.Priority == s.Priority && s.Identity < identity
}
