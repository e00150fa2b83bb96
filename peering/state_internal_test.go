package peering

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

var (
	testStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	testSelf  = Self{Identity: "me", Priority: 5, Elects: true}
)

// peersOf returns the status of an object with the own record and one peer.
func peersOf(priority int, runtime string, busy *int) map[string]PeerRecord {
	return map[string]PeerRecord{
		"me":  {Priority: 5, Lifetime: time.Minute, LastSeen: testStart, Runtime: Runtime, Busy: ptr.To(1)},
		"him": {Priority: priority, Lifetime: time.Minute, LastSeen: testStart, Runtime: runtime, Busy: busy},
	}
}

// publishedState returns the state of a busy operator that published its record at the start.
func publishedState(m Member, records map[string]PeerRecord) memberState {
	m.Self = testSelf
	s := newState(m)
	s.confirmPublished(PeerRecord{Lifetime: time.Minute, LastSeen: testStart, Busy: ptr.To(1)}, testStart)
	s.storeObservation(records, "1", testStart)
	return s
}

// TestDecisions shows how the decision about the gate depends on the record, the peers and the time.
func TestDecisions(t *testing.T) {
	t.Parallel()
	alone := map[string]PeerRecord{"me": peersOf(0, "", nil)["me"]}
	higher, lower, kopf := peersOf(9, "", nil), peersOf(1, Runtime, ptr.To(2)), peersOf(1, "", nil)
	idle := func(s *memberState) {
		s.step = pauseForPeers
		s.composeRecord(testStart)
	}
	waits := Member{SilentPeerWait: 5 * time.Second}
	for name, tc := range map[string]struct {
		reason  string
		member  Member
		records map[string]PeerRecord
		change  func(*memberState)
		after   time.Duration
		want    gateStep
	}{
		"NoAnswer": {
			"an unknown record keeps the gate",
			Member{}, alone, func(s *memberState) { s.record = recordUnknown }, 0, keepGate,
		},
		"New": {"a new record settles first, as removed records can come back", Member{}, alone, nil, 0, letSettle},
		"Settled": {"an operator without peers opens the gate after it has settled",
			Member{}, alone, nil, settlingTime, openGate},
		"Open": {"an acting operator without peers keeps the gate",
			Member{Acting: true}, alone, nil, settlingTime, keepGate},
		"Idle": {
			"an operator whose record says idle publishes first that it acts",
			Member{}, alone, func(s *memberState) { s.reportedAttempts = 0 }, settlingTime, publishFirst,
		},
		"IdleSoon": {"an operator with a pending report of idle publishes first that it acts",
			Member{}, alone, idle, settlingTime, publishFirst},
		"Higher": {"a peer of a higher priority pauses the operator",
			Member{}, higher, nil, settlingTime, pauseForPeers},
		"HigherActing": {"a peer of a higher priority pauses an acting operator",
			Member{Acting: true}, higher, nil, settlingTime, pauseForPeers},
		"HigherExpired": {"an expired own record stops the operator even without peers",
			Member{}, higher, nil, time.Minute, stopActing},
		"Lower": {"a busy peer of a lower priority is awaited", Member{}, lower, nil, settlingTime, awaitPeers},
		"LowerIdle": {"an idle peer of a lower priority opens the gate",
			Member{}, peersOf(1, Runtime, ptr.To(0)), nil, settlingTime, openGate},
		"LowerKopf":     {"a peer of Kopf is awaited for some time", waits, kopf, nil, 4 * time.Second, awaitPeers},
		"LowerKopfLate": {"a peer of Kopf is not awaited after the time", waits, kopf, nil, 5 * time.Second, openGate},
		"LowerActing": {"an acting operator awaits a busy peer of a lower priority",
			Member{Acting: true}, lower, nil, settlingTime, awaitPeers},
		"AlmostLost": {"a record that is still valid keeps the gate",
			Member{Acting: true}, alone, nil, time.Minute - margin - 1, keepGate},
		"Lost": {
			"a record that was not renewed stops the operator",
			Member{Acting: true}, alone, nil, time.Minute - margin, stopActing,
		},
		"NoObject": {"an operator without a peering object acts alone",
			Member{}, nil, (*memberState).markUnavailable, 0, openGate},
		"NoMandatory": {"a missing mandatory object stops the operator",
			Member{Mandatory: true}, nil, (*memberState).markUnavailable, 0, stopActing},
		"NoObjectAbove": {"a valid peer of a removed object pauses the operator",
			Member{}, higher, (*memberState).markUnavailable, settlingTime, pauseForPeers},
		"NoObjectLater": {"an expired peer of a removed object opens the gate",
			Member{}, higher, (*memberState).markUnavailable, time.Minute, openGate},
		"NoObjectRules": {
			"by Kopf's rules, a peer of a removed object pauses without end",
			Member{KopfRules: true}, higher, (*memberState).markUnavailable, time.Hour, pauseForPeers,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := publishedState(tc.member, tc.records)
			if tc.change != nil {
				tc.change(&s)
			}
			if got := s.nextStep(testStart.Add(tc.after)); got != tc.want {
				t.Errorf("%s: want step %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// TestSettlingAfterTheAnswer shows that an operator settles from when its record is confirmed, however long the
// request took: D-peering-gone. The end of the record counts from when it was sent.
func TestSettlingAfterTheAnswer(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, time.Millisecond, settlingTime, 9 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			t.Parallel()
			s, answered := newState(Member{Self: testSelf}), testStart.Add(takes)
			s.confirmPublished(PeerRecord{Lifetime: time.Minute, LastSeen: testStart, Busy: ptr.To(1)}, answered)
			for after, want := range map[time.Duration]gateStep{
				0: letSettle, settlingTime - 1: letSettle, settlingTime: openGate,
			} {
				if got := s.nextStep(answered.Add(after)); got != want {
					t.Errorf("%s after the answer: want step %d, got %d", after, want, got)
				}
			}
			if want := testStart.Add(time.Minute - margin); !s.lostAt.Equal(want) {
				t.Errorf("want the record to be lost at %s, got %s", want, s.lostAt)
			}
		})
	}
}

// TestNextWrites shows that the next write is due at the renewal, or earlier if the record reports something else, is
// missing, or peers expire.
func TestNextWrites(t *testing.T) {
	t.Parallel()
	type due struct {
		After  time.Duration
		OrIdle bool
	}
	busy, jitter := Member{Busy: func() int { return 1 }}, func() time.Duration { return 7 * time.Second }
	retry := func(s *memberState) { s.scheduleRenewal(testStart, true) }
	missing := func(s *memberState) { s.isMissing, s.lastRestore = true, testStart }
	again := func(s *memberState) {
		for range 2 {
			s.isMissing = true
			s.composeRecord(testStart)
		}
	}
	soon := func(s *memberState) { s.wakeAt = testStart.Add(time.Second) }
	for name, tc := range map[string]struct {
		reason string
		member Member
		change func(*memberState)
		want   due
	}{
		"Renewal": {"a record is renewed after a third of its lifetime", Member{}, nil, due{20 * time.Second, false}},
		"Jitter": {"a jitter renews the record that long before its end",
			Member{Jitter: jitter}, nil, due{53 * time.Second, false}},
		"Retry": {"a failed request is retried after a second", Member{}, retry, due{time.Second, false}},
		"RetryFirst": {
			"a missing record does not speed up a retry",
			Member{}, func(s *memberState) { retry(s); missing(s) }, due{time.Second, false},
		},
		"Missing": {"a missing record is written again at once", Member{}, missing, due{0, false}},
		"MissingMore": {"a record that is removed repeatedly is written with a delay",
			Member{}, again, due{125 * time.Millisecond, false}},
		"Acting": {
			"a record that says idle is updated at once when the operator acts",
			Member{}, func(s *memberState) { s.reportedAttempts = 0 }, due{0, false},
		},
		"Pausing": {
			"a pausing operator writes as soon as its attempts have ended",
			busy, func(s *memberState) { s.step = pauseForPeers }, due{20 * time.Second, true},
		},
		"Paused": {"a paused operator without attempts reports at once that it is idle",
			Member{}, func(s *memberState) { s.step = pauseForPeers }, due{0, false}},
		"Expiry": {"the record is written when the first peer expires", Member{}, soon, due{time.Second, false}},
		"NoObject": {"without a peering object, the interval of renewals applies",
			Member{}, (*memberState).markUnavailable, due{20 * time.Second, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := publishedState(tc.member, nil)
			s.isMissing = false
			s.scheduleRenewal(testStart, false)
			if tc.change != nil {
				tc.change(&s)
			}
			at, orIdle := s.nextWrite(testStart)
			if delta := cmp.Diff(tc.want, due{at.Sub(testStart), orIdle}); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

// TestExpiredRecordsToRemove shows that only records of others are removed, and only by the newest object.
func TestExpiredRecordsToRemove(t *testing.T) {
	t.Parallel()
	s := publishedState(Member{}, peersOf(9, "", nil))
	s.storeObservation(peersOf(9, "", nil), "2", testStart.Add(time.Hour))
	if want := []string{"him"}; !cmp.Equal(want, s.expired) || s.version != "2" || !s.wakeAt.IsZero() {
		t.Errorf("want to remove %v, got %v from version %s; wakes up at %s", want, s.expired, s.version, s.wakeAt)
	}
	s.storeObservation(peersOf(9, "", nil), "3", testStart)
	if want := testStart.Add(time.Minute); len(s.expired) > 0 || !s.wakeAt.Equal(want) {
		t.Errorf("want to wake up at %s, got %s, and to remove %v", want, s.wakeAt, s.expired)
	}
}
