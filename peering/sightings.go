package peering

import (
	"slices"
	"time"
)

// DefaultSkew is how far clocks may differ, unless a member says otherwise.
const DefaultSkew = 2 * time.Minute

// sightings are the records that a member has seen, with the time on its own clock when each of them was new. For they
// have the times of the clocks of others, which may be wrong.
type sightings struct {
	own  string // the identity whose record never is gone
	skew time.Duration
	// dated gives records without a time that of their first sighting.
	dated bool
	all   map[string]sighting
}

type sighting struct {
	record  Record
	at      time.Time
	version string // of the object that had it last
	gone    bool   // newer objects do not have it
}

// note takes the place of what was seen before. Of ours, one that acts says so no more before it removes its record. So
// if a record is gone that has not, somebody else has removed it, and its operator may well be alive: it is believed
// until it would have ended. It gives the identities of these that are new.
func (s *sightings) note(records map[string]Record, version string, now time.Time) (gone []string) {
	kept := make(map[string]sighting, len(records))
	for identity, record := range records {
		before, known := s.all[identity]
		if !known || !before.record.same(record) && !(s.dated && before.record.sameUndated(record)) {
			before = sighting{record: record, at: now}
		}
		before.version, before.gone = version, false
		kept[identity] = before
	}
	for identity, before := range s.all {
		_, there := records[identity]
		if there || identity == s.own || !before.record.acts() || !s.death(before).After(now) {
			continue
		}
		if !before.gone {
			gone = append(gone, identity)
		}
		before.gone = true
		kept[identity] = before
	}
	s.all = kept
	slices.Sort(gone)
	return gone
}

// recollect takes an object that comes too late, as it was overtaken by the answer to a write. It may have what a
// record said that is gone by now.
func (s *sightings) recollect(records map[string]Record, version string) {
	for identity, one := range s.all {
		record, there := records[identity]
		if one.gone && there && !record.acts() && older(one.version, version) {
			delete(s.all, identity)
		}
	}
}

// records are those seen last, with the times when they are good no more by what is known here. Of those that are gone,
// they are those that are still good.
func (s *sightings) records(now time.Time) map[string]Record {
	known := make(map[string]Record, len(s.all))
	for identity, one := range s.all {
		record := one.record
		record.dies = s.death(one)
		if !one.gone || record.dies.After(now) {
			known[identity] = record
		}
	}
	return known
}

// death is when the record is good no more. A peer of Kopf has to be believed, as all of its kind believe it. One of
// ours is alive as long as its record changes, so it dies when it has been silent for its lifetime on the clock here;
// but not before its own clock says so, unless that is ahead. What has ended long ago is not waited for.
func (s *sightings) death(one sighting) time.Time {
	own := one.record.LastSeen.Add(one.record.Lifetime)
	if one.record.Runtime == "" {
		return own
	}
	silent := one.at.Add(one.record.Lifetime)
	if one.record.LastSeen.After(one.at) || own.Before(silent) {
		if long := own.Add(s.allowed()); long.Before(silent) {
			return long
		}
		return silent
	}
	return own
}

func (s *sightings) allowed() time.Duration {
	if s.skew == 0 {
		return DefaultSkew
	}
	return max(0, s.skew)
}
