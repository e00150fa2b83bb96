package peering

import "time"

const (
	// margin is how long before its end a record counts as lost.
	margin = 2 * time.Second
	// retryDelay is the delay after a failed request.
	retryDelay = time.Second
	// settling is how long a record is published before its operator begins. Operators whose records were removed just
	// before have written them again at the end of it.
	settling = time.Second
)

// recordState is what the peers can know of the operator.
type recordState int

const (
	recordUnknown     recordState = iota // the API server has not answered yet
	recordPublished                      // the object has the record, which is valid
	recordUnavailable                    // the object is missing, or writing it is refused
	recordExpired                        // the record could not be renewed in time
)

// step is a decision about the gate.
type step int

const (
	keepGate      step = iota // there is nothing to change, or nothing is known
	pauseForPeers             // a peer of a higher rank is alive
	stopActing                // the peers may treat the operator as dead
	publishFirst              // the record must report that the operator acts before it does
	letSettle                 // the record is new
	awaitPeers                // peers of a lower rank may still act
	openGate
)

// state has the observations and writes of a member, and the decisions that follow. Its methods make no requests, do
// not wait and do not read the clock.
type state struct {
	member  Member
	peers   peerTable
	verdict Verdict
	version string // of the newest object

	record       recordState
	reported     int       // how busy the record says the operator is; zero if it may say so
	joined       time.Time // since when the record is known to be published, without a break
	lostAt       time.Time // when the published record counts as lost
	isMissing    bool      // the object does not have the record as it was written
	restored     time.Time // when a missing record was written last
	restoreDelay time.Duration

	nextRenewal time.Time
	isRetrying  bool      // the last write failed
	wakeAt      time.Time // when the first peer of a higher rank expires; zero without
	expired     []string  // records to remove from the object of the version
	isRemoving  bool      // a request that removes such records is running
	nextRemoval time.Time

	step      step
	isClosed  bool
	actsAlone bool // it acts without a record
	hasLeft   bool

	isAnswered bool // it was settled once
}

func newState(m Member) state {
	return state{
		member: m, peers: peerTable{own: m.Self.Identity, skew: m.Skew, datesUndated: !m.KopfRules},
		isClosed: !m.Acting, actsAlone: m.Acting,
	}
}

// yields reports whether the operator stops acting, or has stopped. Otherwise it acts or is about to.
func (s *state) yields() bool {
	return s.hasLeft || s.step == pauseForPeers || s.step == stopActing
}

// decide updates the verdict and returns what to do with the gate.
func (s *state) decide(now time.Time) step {
	if s.record != recordUnavailable || !s.member.KopfRules {
		s.judge(now)
	}
	if s.record == recordPublished {
		if !s.lostAt.After(now) {
			s.record, s.joined = recordExpired, time.Time{}
		}
		if s.actsAlone && len(s.awaited(now)) > 0 { // so did the peer
			s.isClosed = true
		}
		s.actsAlone = false
	}
	isPublished := s.record == recordPublished
	switch {
	case s.verdict.Paused():
		return pauseForPeers
	case s.record == recordExpired, s.record == recordUnavailable && s.member.Mandatory:
		return stopActing
	case !s.isClosed, s.record == recordUnknown:
		return keepGate
	case isPublished && s.reported == 0:
		return publishFirst
	case isPublished && now.Before(s.joined.Add(settling)):
		return letSettle
	case len(s.awaited(now)) > 0:
		return awaitPeers
	default:
		return openGate
	}
}

func (s *state) judge(now time.Time) {
	s.verdict = Judge(s.member.Self, s.peers.records(now), now)
}

// awaited returns the peers of a lower rank that may still act.
func (s *state) awaited(now time.Time) []string {
	peers := s.verdict.Acting
	if s.record == recordPublished && now.Before(s.joined.Add(s.member.Wait)) {
		peers = append(peers[:len(peers):len(peers)], s.verdict.Silent...)
	}
	return peers
}

// hasSettled reports whether the peers are known, and know of the operator if that is possible.
func (s *state) hasSettled(now time.Time) bool {
	return s.record == recordUnavailable ||
		s.record == recordPublished && !s.isMissing && !now.Before(s.joined.Add(settling))
}

// nextDecision returns when the decision can change by time alone. Zero is never.
func (s *state) nextDecision(now time.Time) (next time.Time) {
	var times []time.Time
	if s.record == recordPublished {
		times = append(times, s.lostAt, s.joined.Add(settling), s.joined.Add(s.member.Wait))
	}
	if s.isClosed {
		for _, record := range s.peers.records(now) {
			times = append(times, record.Expires())
		}
	}
	for _, at := range times {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// observe takes the records of the newest object. It returns the peers whose records were removed while they acted.
func (s *state) observe(records map[string]Record, version string, now time.Time) (removed []string) {
	s.version = version
	removed = s.peers.replace(records, version, now)
	if s.record != recordUnknown && !s.hasLeft {
		own, found := records[s.member.Self.Identity]
		s.isMissing = s.record == recordUnavailable || !found || own.Busy == nil || *own.Busy != s.reported
	}
	s.judge(now)
	s.wakeAt, s.expired = s.verdict.Wake, nil
	for _, identity := range s.verdict.Expired {
		if identity != s.member.Self.Identity {
			s.expired = append(s.expired, identity)
		}
	}
	return removed
}

// compose returns the record of the operator.
func (s *state) compose(now time.Time) Record {
	if s.isMissing {
		s.restore(now)
	}
	busy := s.member.runningAttempts()
	if !s.yields() {
		busy++
	}
	if busy == 0 {
		s.reported = 0 // peers may act before the answer arrives
	}
	return Record{
		Priority: s.member.Self.Priority, Lifetime: s.member.lifetime(), LastSeen: now, Runtime: Runtime, Busy: &busy,
	}
}

// restore increases the delay of restoring a missing record. Kopf removes a record several times, once for each pending
// event; the delay limits the requests if another client removes it repeatedly.
func (s *state) restore(now time.Time) {
	if now.After(s.restored.Add(10 * retryDelay)) {
		s.restoreDelay = retryDelay / 32
	}
	s.restored, s.restoreDelay = now, min(2*s.restoreDelay, retryDelay)
}

// publish notes that the API server has the record. It returns false if the record counts as lost already. The record
// ends by the time when it was sent, but it settles from now: a slow request may have stored it just before the answer.
func (s *state) publish(record Record, now time.Time) bool {
	lostAt := record.LastSeen.Add(max(record.Lifetime-margin, record.Lifetime/2))
	if !lostAt.After(now) {
		return false
	}
	if s.record != recordPublished {
		s.joined = now
	}
	s.record, s.lostAt, s.isMissing, s.reported = recordPublished, lostAt, false, *record.Busy
	return true
}

// withdraw notes that the record cannot be stored.
func (s *state) withdraw() {
	s.record, s.isMissing, s.lostAt, s.joined = recordUnavailable, false, time.Time{}, time.Time{}
}

// scheduleRenewal sets the next renewal after an attempt to write the record.
func (s *state) scheduleRenewal(now time.Time, isRetrying bool) {
	s.isRetrying = isRetrying
	if s.nextRenewal = now.Add(retryDelay); !isRetrying {
		s.nextRenewal, s.wakeAt = now.Add(s.interval()), time.Time{}
	}
}

// interval returns the time between renewals. With a jitter, it is the lifetime less the jitter, as in Kopf.
func (s *state) interval() time.Duration {
	lifetime := s.member.lifetime()
	if s.member.Jitter == nil {
		return max(retryDelay, lifetime/3)
	}
	return max(retryDelay, min(lifetime, lifetime-s.member.Jitter()))
}

// nextWrite returns when the record must be written, and whether that is earlier if all attempts end before.
func (s *state) nextWrite(now time.Time) (at time.Time, orIdle bool) {
	at = s.nextRenewal
	switch {
	case s.isRetrying:
		return at, false
	case s.isMissing:
		return s.restored.Add(s.restoreDelay), false
	case s.record != recordPublished:
		return at, false
	}
	if !s.wakeAt.IsZero() && s.wakeAt.Before(at) {
		at = s.wakeAt // all peers look at the object again then
	}
	switch isOutdated := s.yields() == (s.reported > 0); {
	case isOutdated && s.yields() && s.member.runningAttempts() > 0:
		return at, true
	case isOutdated:
		return now, false
	default:
		return at, false
	}
}
