package peering

import (
	"slices"
	"time"
)

// DefaultSkew is the default for how far the clocks of operators may differ.
const DefaultSkew = 2 * time.Minute

// peerTable is the set of records that a member has seen. It stores when each of them was first seen by the local
// clock, because the times in the records were written by other clocks, which can be wrong.
type peerTable struct {
	ownIdentity  string // the identity whose record never counts as removed
	skew         time.Duration
	datesUndated bool // records without a time count from when they were first seen
	entries      map[string]peerEntry
}

// peerEntry is one record with its observations.
type peerEntry struct {
	record    PeerRecord
	firstSeen time.Time // when this content appeared, by the local clock
	version   string    // of the last object that had the record
	isRemoved bool      // newer objects do not have it
}

// replaceRecords stores the records of a newer object, and returns the identities of records that were newly removed
// while their operators acted.
//
// An operator of this framework reports that it is idle before it removes its record. If the record of an acting
// operator is missing, another client has removed it, and the operator can be alive. Such a record stays valid until it
// would have expired.
func (p *peerTable) replaceRecords(records map[string]PeerRecord, version string, now time.Time) (removed []string) {
	kept := make(map[string]peerEntry, len(records))
	for identity, record := range records {
		entry, found := p.entries[identity]
		if !found || !entry.record.hasSameContent(record) &&
			!(p.datesUndated && entry.record.hasSameUndatedContent(record)) {
			// A changed record shows that its operator is alive now, whatever time it has.
			entry = peerEntry{record: record, firstSeen: now}
		}
		entry.version, entry.isRemoved = version, false
		kept[identity] = entry
	}
	for identity, entry := range p.entries {
		_, found := records[identity]
		if found || identity == p.ownIdentity || !entry.record.isActing() || !p.expiryOf(entry).After(now) {
			continue
		}
		if !entry.isRemoved {
			removed = append(removed, identity)
		}
		entry.isRemoved = true
		kept[identity] = entry
	}
	p.entries = kept
	slices.Sort(removed)
	return removed
}

// applyOlder evaluates an object that is older than the newest one. This happens if the answer to a write overtakes the
// watch. The older object can have the last content of a record that was removed since: the report that its operator
// was idle. Then the operator need not be waited for.
func (p *peerTable) applyOlder(records map[string]PeerRecord, version string) {
	for identity, entry := range p.entries {
		record, found := records[identity]
		if entry.isRemoved && found && !record.isActing() && isOlder(entry.version, version) {
			delete(p.entries, identity)
		}
	}
}

// validRecords returns the newest records with their ends by the local clock, including removed ones that are still
// valid.
func (p *peerTable) validRecords(now time.Time) map[string]PeerRecord {
	known := make(map[string]PeerRecord, len(p.entries))
	for identity, entry := range p.entries {
		record := entry.record
		record.expiry = p.expiryOf(entry)
		if !entry.isRemoved || record.expiry.After(now) {
			known[identity] = record
		}
	}
	return known
}

// expiryOf returns when a record ends.
//
// A record of Kopf ends by its own time, because all of Kopf's operators evaluate it in this way. A peer of this
// framework is alive as long as its record changes: the record ends when it has not changed for its lifetime by the
// local clock. It ends earlier if it has expired by its own time for longer than clocks may differ.
func (p *peerTable) expiryOf(entry peerEntry) time.Time {
	own := entry.record.LastSeen.Add(entry.record.Lifetime)
	if entry.record.Runtime == "" {
		return own
	}
	unchanged := entry.firstSeen.Add(entry.record.Lifetime)
	// An old record, such as one that a crashed operator left behind, does not delay the start for its whole lifetime.
	if latest := own.Add(p.allowedSkew()); latest.Before(unchanged) {
		return latest
	}
	return unchanged
}

// allowedSkew returns the skew with its default, and zero if it is negative.
func (p *peerTable) allowedSkew() time.Duration {
	if p.skew == 0 {
		return DefaultSkew
	}
	return max(0, p.skew)
}
