package peering

import "time"

// DefaultSkew is how far clocks may differ, unless a member says otherwise.
const DefaultSkew = 2 * time.Minute

// sightings are the records that a member has seen, with the time on its own clock when each of them was new. For they
// have the times of the clocks of others, which may be wrong.
type sightings struct {
	skew time.Duration
	all  map[string]sighting
}

type sighting struct {
	record Record
	at     time.Time
}

// note takes the place of what was seen before.
func (s *sightings) note(records map[string]Record, now time.Time) {
	kept := make(map[string]sighting, len(records))
	for identity, record := range records {
		before, known := s.all[identity]
		if !known || !before.record.same(record) {
			before = sighting{record, now}
		}
		kept[identity] = before
	}
	s.all = kept
}

// records are those seen last, with the times when they are good no more by what is known here.
func (s *sightings) records() map[string]Record {
	known := make(map[string]Record, len(s.all))
	for identity, one := range s.all {
		record := one.record
		record.dies = s.death(one)
		known[identity] = record
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
