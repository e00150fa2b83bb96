package peering

import (
	"slices"
	"time"
)

// DefaultSkew is how far clocks may differ by default.
const DefaultSkew = 2 * time.Minute

// peerTable is the set of records that a member has seen. It notes when each of them was new by the clock here, because
// the clocks of others, which wrote the times in the records, can be wrong.
type peerTable struct {
	own          string // the identity whose record never counts as removed
	skew         time.Duration
	datesUndated bool // records without a time count from when they were first seen
	all          map[string]peerEntry
}

type peerEntry struct {
	record    Record
	firstSeen time.Time
	version   string // of the last object that had the record
	isRemoved bool   // newer objects do not have it
}

// replace takes the records of a newer object. An operator of this framework reports that it is idle before it removes
// its record. If the record of an acting operator is missing, another client has removed it, and the operator can be
// alive: the record stays valid until it would have expired. replace returns the identities of new ones of these.
func (p *peerTable) replace(records map[string]Record, version string, now time.Time) (removed []string) {
	kept := make(map[string]peerEntry, len(records))
	for identity, record := range records {
		entry, found := p.all[identity]
		if !found || !entry.record.equals(record) && !(p.datesUndated && entry.record.equalsUndated(record)) {
			entry = peerEntry{record: record, firstSeen: now}
		}
		entry.version, entry.isRemoved = version, false
		kept[identity] = entry
	}
	for identity, entry := range p.all {
		_, found := records[identity]
		if found || identity == p.own || !entry.record.acts() || !p.expiry(entry).After(now) {
			continue
		}
		if !entry.isRemoved {
			removed = append(removed, identity)
		}
		entry.isRemoved = true
		kept[identity] = entry
	}
	p.all = kept
	slices.Sort(removed)
	return removed
}

// applyOlder takes an object that is older than the newest one, which was the answer to a write and has overtaken the
// watch. The older object can have the last content of a removed record: that its operator was idle.
func (p *peerTable) applyOlder(records map[string]Record, version string) {
	for identity, entry := range p.all {
		record, found := records[identity]
		if entry.isRemoved && found && !record.acts() && isOlder(entry.version, version) {
			delete(p.all, identity)
		}
	}
}

// records returns the newest records with their ends by the clock here, and the removed ones that are still valid.
func (p *peerTable) records(now time.Time) map[string]Record {
	known := make(map[string]Record, len(p.all))
	for identity, entry := range p.all {
		record := entry.record
		record.expiry = p.expiry(entry)
		if !entry.isRemoved || record.expiry.After(now) {
			known[identity] = record
		}
	}
	return known
}

// expiry returns when a record ends. A record of Kopf ends by its own time, because all peers of Kopf see it so. A peer
// of this framework is alive as long as its record changes: the record ends when it has not changed for its lifetime by
// the clock here, but not before its own time, unless that is in the future. If it has expired for longer than clocks
// may differ, it has ended.
func (p *peerTable) expiry(entry peerEntry) time.Time {
	own := entry.record.LastSeen.Add(entry.record.Lifetime)
	if entry.record.Runtime == "" {
		return own
	}
	unchanged := entry.firstSeen.Add(entry.record.Lifetime)
	if !entry.record.LastSeen.After(entry.firstSeen) && !own.Before(unchanged) {
		return own
	}
	if latest := own.Add(p.allowedSkew()); latest.Before(unchanged) {
		return latest
	}
	return unchanged
}

func (p *peerTable) allowedSkew() time.Duration {
	if p.skew == 0 {
		return DefaultSkew
	}
	return max(0, p.skew)
}
