package peering

import "time"

const (
	// margin is how long before its end a record counts as lost.
	margin = 2 * time.Second
	// retryDelay is the delay after a failed request.
	retryDelay = time.Second
	// settlingTime is how long a record is published before its operator begins. Operators whose records were removed
	// just before have written them again at the end of it.
	settlingTime = time.Second
)

// recordState is the state of the operator's own record as its peers may see it.
type recordState int

const (
	recordUnknown     recordState = iota // the API server has not answered yet
	recordPublished                      // the object has the record, which is valid
	recordUnavailable                    // the object is missing, or writing it is refused
	recordExpired                        // the record could not be renewed in time
)

// gateStep is a decision about the gate.
type gateStep int

const (
	keepGate      gateStep = iota // the gate has the right state, or nothing is known yet
	pauseForPeers                 // a peer of a higher rank is alive
	stopActing                    // the peers may treat the operator as dead
	publishFirst                  // the record must report that the operator acts before it does
	letSettle                     // the record is new
	awaitPeers                    // peers of a lower rank may still act
	openGate
)

// memberState has the observations and writes of a member, and makes the decisions that follow. Its methods make no
// requests, do not wait and do not read the clock, so tests can call them with any time.
type memberState struct {
	member  Member
	peers   peerTable
	verdict PeerVerdict
	version string // of the newest object

	record           recordState
	reportedAttempts int       // the number of attempts in the published record; zero if the record may report idle
	publishedSince   time.Time // since when the record is published without a break
	lostAt           time.Time // when the published record counts as lost
	isMissing        bool      // the object does not have the record as it was written
	lastRestore      time.Time // when a missing record was written last
	restoreDelay     time.Duration

	nextRenewal time.Time
	isRetrying  bool      // the last write failed
	wakeAt      time.Time // when the first peer of a higher rank expires; zero without
	expired     []string  // records to remove from the object of the version
	isRemoving  bool      // a request that removes such records is running
	nextRemoval time.Time

	step      gateStep
	isClosed  bool
	actsAlone bool // it acts without a record
	hasLeft   bool

	isAnswered bool // it was settled once
}

// newState returns the state before the first answer. An operator that already acts continues until a peer demands a
// pause.
func newState(m Member) memberState {
	return memberState{
		member: m, peers: peerTable{ownIdentity: m.Self.Identity, skew: m.Skew, datesUndated: !m.KopfRules},
		isClosed: !m.Acting, actsAlone: m.Acting,
	}
}

// isYielding reports whether the operator stops acting, or has stopped. Otherwise it acts or is about to, and its
// record reports one attempt more than those that are running.
func (s *memberState) isYielding() bool {
	return s.hasLeft || s.step == pauseForPeers || s.step == stopActing
}

// nextStep updates the verdict and returns the next step for the gate.
func (s *memberState) nextStep(now time.Time) gateStep {
	// With Kopf's rules, the verdict stays as it was while the object is missing: nothing can change it.
	if s.record != recordUnavailable || !s.member.KopfRules {
		s.updateVerdict(now)
	}
	if s.record == recordPublished {
		if !s.lostAt.After(now) {
			s.record, s.publishedSince = recordExpired, time.Time{}
		}
		// The operator acted without a record, and a peer may have done the same. Its gate closes until that peer is
		// idle.
		if s.actsAlone && len(s.awaitedPeers(now)) > 0 {
			s.isClosed = true
		}
		s.actsAlone = false
	}
	isPublished := s.record == recordPublished
	// The order is the precedence: a pause for peers comes before everything else, and each step towards opening
	// requires the ones before it.
	switch {
	case s.verdict.IsPaused():
		return pauseForPeers
	case s.record == recordExpired, s.record == recordUnavailable && s.member.Mandatory:
		return stopActing
	// An open gate stays open, and a closed one stays closed until the API server has answered.
	case !s.isClosed, s.record == recordUnknown:
		return keepGate
	case isPublished && s.reportedAttempts == 0:
		return publishFirst
	case isPublished && now.Before(s.publishedSince.Add(settlingTime)):
		return letSettle
	case len(s.awaitedPeers(now)) > 0:
		return awaitPeers
	default:
		return openGate
	}
}

// updateVerdict updates the verdict by the records that are valid now.
func (s *memberState) updateVerdict(now time.Time) {
	s.verdict = JudgeRecords(s.member.Self, s.peers.validRecords(now), now)
}

// awaitedPeers returns the peers of a lower rank that may still act. Silent peers count only for the configured wait,
// because they never report that they are idle.
func (s *memberState) awaitedPeers(now time.Time) []string {
	peers := s.verdict.ActingPeers
	if s.record == recordPublished && now.Before(s.publishedSince.Add(s.member.SilentPeerWait)) {
		// The capacity is limited, so append copies and does not write into the verdict.
		peers = append(peers[:len(peers):len(peers)], s.verdict.SilentPeers...)
	}
	return peers
}

// hasSettled reports whether the demands of the peers are known, and the peers had the time to react to the operator's
// record. An operator that cannot store its record does not wait for that.
func (s *memberState) hasSettled(now time.Time) bool {
	return s.record == recordUnavailable ||
		s.record == recordPublished && !s.isMissing && !now.Before(s.publishedSince.Add(settlingTime))
}

// nextDecision returns when the decision can change by time alone. Zero means never.
func (s *memberState) nextDecision(now time.Time) (next time.Time) {
	var times []time.Time
	if s.record == recordPublished {
		times = append(times, s.lostAt, s.publishedSince.Add(settlingTime),
			s.publishedSince.Add(s.member.SilentPeerWait))
	}
	if s.isClosed {
		for _, record := range s.peers.validRecords(now) {
			times = append(times, record.ExpiresAt())
		}
	}
	for _, at := range times {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// storeObservation stores the records of the newest object. It returns the peers whose records were removed while they
// acted.
func (s *memberState) storeObservation(
	records map[string]PeerRecord, version string, now time.Time,
) (removed []string) {
	s.version = version
	removed = s.peers.replaceRecords(records, version, now)
	if s.record != recordUnknown && !s.hasLeft {
		own, found := records[s.member.Self.Identity]
		// Another client can have removed the record, or have overwritten it with an older one.
		s.isMissing = s.record == recordUnavailable || !found || own.Busy == nil || *own.Busy != s.reportedAttempts
	}
	s.updateVerdict(now)
	s.wakeAt, s.expired = s.verdict.Wake, nil
	for _, identity := range s.verdict.Expired {
		// The own record is renewed instead.
		if identity != s.member.Self.Identity {
			s.expired = append(s.expired, identity)
		}
	}
	return removed
}

// composeRecord returns the record to write. Its number of attempts includes one while the operator may start more.
func (s *memberState) composeRecord(now time.Time) PeerRecord {
	if s.isMissing {
		s.extendRestoreDelay(now)
	}
	busy := s.member.runningAttempts()
	if !s.isYielding() {
		busy++
	}
	if busy == 0 {
		// The peers may act on this record before its answer arrives, so the operator must not act from now on.
		s.reportedAttempts = 0
	}
	return PeerRecord{
		Priority: s.member.Self.Priority, Lifetime: s.member.recordLifetime(), LastSeen: now, Runtime: Runtime,
		Busy: &busy, Group: s.member.Self.Group,
	}
}

// extendRestoreDelay increases the delay of restoring a missing record. Kopf removes a record several times, once for
// each pending event; the delay limits the requests if another client removes it repeatedly.
func (s *memberState) extendRestoreDelay(now time.Time) {
	// After ten seconds without a loss, the delay starts small again.
	if now.After(s.lastRestore.Add(10 * retryDelay)) {
		s.restoreDelay = retryDelay / 32
	}
	s.lastRestore, s.restoreDelay = now, min(2*s.restoreDelay, retryDelay)
}

// confirmPublished stores that the API server has confirmed the record. It returns false if the record counts as lost
// already.
//
// The end counts from when the request was sent. The settling time counts from now: a slow request may have stored the
// record just before the answer.
func (s *memberState) confirmPublished(record PeerRecord, now time.Time) bool {
	lostAt := record.LastSeen.Add(max(record.Lifetime-margin, record.Lifetime/2))
	if !lostAt.After(now) {
		return false
	}
	if s.record != recordPublished {
		s.publishedSince = now
	}
	s.record, s.lostAt, s.isMissing, s.reportedAttempts = recordPublished, lostAt, false, *record.Busy
	return true
}

// markUnavailable stores that the record cannot be stored.
func (s *memberState) markUnavailable() {
	s.record, s.isMissing, s.lostAt, s.publishedSince = recordUnavailable, false, time.Time{}, time.Time{}
}

// scheduleRenewal sets the next renewal after an attempt to write the record.
func (s *memberState) scheduleRenewal(now time.Time, isRetrying bool) {
	s.isRetrying = isRetrying
	if s.nextRenewal = now.Add(retryDelay); !isRetrying {
		// If the answer still has a blocker, its observation sets wakeAt again.
		s.nextRenewal, s.wakeAt = now.Add(s.renewalInterval()), time.Time{}
	}
}

// renewalInterval returns the time between renewals. With a jitter, it is the lifetime less the jitter, as in Kopf.
func (s *memberState) renewalInterval() time.Duration {
	lifetime := s.member.recordLifetime()
	if s.member.Jitter == nil {
		return max(retryDelay, lifetime/3)
	}
	return max(retryDelay, min(lifetime, lifetime-s.member.Jitter()))
}

// nextWrite returns when the record must be written next. With orIdle, it must be written earlier if all attempts end.
func (s *memberState) nextWrite(now time.Time) (at time.Time, orIdle bool) {
	at = s.nextRenewal
	switch {
	// After a failure, only the retry delay counts: an outdated record must not cause requests without a pause.
	case s.isRetrying:
		return at, false
	case s.isMissing:
		return s.lastRestore.Add(s.restoreDelay), false
	case s.record != recordPublished:
		return at, false
	}
	if !s.wakeAt.IsZero() && s.wakeAt.Before(at) {
		// At that time, all peers evaluate the object again.
		at = s.wakeAt
	}
	// An operator that acts must report at least one attempt. One that yields must report none as soon as its last
	// attempt has ended.
	switch isOutdated := s.isYielding() == (s.reportedAttempts > 0); {
	case isOutdated && s.isYielding() && s.member.runningAttempts() > 0:
		return at, true
	case isOutdated:
		return now, false
	default:
		return at, false
	}
}
