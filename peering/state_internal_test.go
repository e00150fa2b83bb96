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
func peersOf(priority int, runtime string, busy *int) map[string]Record {
	return map[string]Record{
		"me":  {Priority: 5, Lifetime: time.Minute, LastSeen: testStart, Runtime: Runtime, Busy: ptr.To(1)},
		"him": {Priority: priority, Lifetime: time.Minute, LastSeen: testStart, Runtime: runtime, Busy: busy},
	}
}

// published returns a state whose record was published at the start, with a busy operator.
func published(m Member, records map[string]Record) state {
	m.Self = testSelf
	s := newState(m)
	s.publish(Record{Lifetime: time.Minute, LastSeen: testStart, Busy: ptr.To(1)}, testStart)
	s.observe(records, "1", testStart)
	return s
}

// The decision about the gate depends on the record, the peers and the time.
func TestDecisions(t *testing.T) {
	t.Parallel()
	alone := map[string]Record{"me": peersOf(0, "", nil)["me"]}
	higher, lower, kopf := peersOf(9, "", nil), peersOf(1, Runtime, ptr.To(2)), peersOf(1, "", nil)
	idle := func(s *state) {
		s.step = pauseForPeers
		s.compose(testStart)
	}
	waits := Member{Wait: 5 * time.Second}
	for name, tc := range map[string]struct {
		reason  string
		member  Member
		records map[string]Record
		change  func(*state)
		after   time.Duration
		want    step
	}{
		"NoAnswer": {
			"the record may not be there", Member{}, alone, func(s *state) { s.record = recordUnknown }, 0, keepGate,
		},
		"New":     {"removed records can come back", Member{}, alone, nil, 0, letSettle},
		"Settled": {"there are no peers", Member{}, alone, nil, settling, openGate},
		"Open":    {"nothing changes", Member{Acting: true}, alone, nil, settling, keepGate},
		"Idle": {
			"peers must see that it acts", Member{}, alone, func(s *state) { s.reported = 0 }, settling, publishFirst,
		},
		"IdleSoon":      {"a report that it is idle is under way", Member{}, alone, idle, settling, publishFirst},
		"Higher":        {"a peer of a higher priority acts", Member{}, higher, nil, settling, pauseForPeers},
		"HigherActing":  {"an acting operator pauses, too", Member{Acting: true}, higher, nil, settling, pauseForPeers},
		"HigherExpired": {"no peer and no own record", Member{}, higher, nil, time.Minute, stopActing},
		"Lower":         {"an attempt of the peer is running", Member{}, lower, nil, settling, awaitPeers},
		"LowerIdle":     {"the peer is idle", Member{}, peersOf(1, Runtime, ptr.To(0)), nil, settling, openGate},
		"LowerKopf":     {"the peer needs time to pause", waits, kopf, nil, 4 * time.Second, awaitPeers},
		"LowerKopfLate": {"the peer has paused", waits, kopf, nil, 5 * time.Second, openGate},
		"LowerActing":   {"both have acted without a record", Member{Acting: true}, lower, nil, settling, awaitPeers},
		"AlmostLost":    {"the record is valid", Member{Acting: true}, alone, nil, time.Minute - margin - 1, keepGate},
		"Lost": {
			"the record could not be renewed", Member{Acting: true}, alone, nil, time.Minute - margin, stopActing,
		},
		"NoObject":      {"it acts alone", Member{}, nil, (*state).withdraw, 0, openGate},
		"NoMandatory":   {"it must not act alone", Member{Mandatory: true}, nil, (*state).withdraw, 0, stopActing},
		"NoObjectAbove": {"the peer is still valid", Member{}, higher, (*state).withdraw, settling, pauseForPeers},
		"NoObjectLater": {"the peer has expired", Member{}, higher, (*state).withdraw, time.Minute, openGate},
		"NoObjectRules": {
			"Kopf keeps its decision", Member{KopfRules: true}, higher, (*state).withdraw, time.Hour, pauseForPeers,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := published(tc.member, tc.records)
			if tc.change != nil {
				tc.change(&s)
			}
			if got := s.decide(testStart.Add(tc.after)); got != tc.want {
				t.Errorf("%s: want step %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// An operator settles from when its record is confirmed, however long the request took: D-peering-gone. The end of the
// record counts from when it was sent.
func TestSettlingAfterTheAnswer(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, time.Millisecond, settling, 9 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			t.Parallel()
			s, answered := newState(Member{Self: testSelf}), testStart.Add(takes)
			s.publish(Record{Lifetime: time.Minute, LastSeen: testStart, Busy: ptr.To(1)}, answered)
			for after, want := range map[time.Duration]step{
				0: letSettle, settling - 1: letSettle, settling: openGate,
			} {
				if got := s.decide(answered.Add(after)); got != want {
					t.Errorf("%s after the answer: want step %d, got %d", after, want, got)
				}
			}
			if want := testStart.Add(time.Minute - margin); !s.lostAt.Equal(want) {
				t.Errorf("want the record to be lost at %s, got %s", want, s.lostAt)
			}
		})
	}
}

// The next write is due at the renewal, or earlier if the record reports something else, is missing, or peers expire.
func TestNextWrites(t *testing.T) {
	t.Parallel()
	type due struct {
		After  time.Duration
		OrIdle bool
	}
	busy, jitter := Member{Busy: func() int { return 1 }}, func() time.Duration { return 7 * time.Second }
	retry := func(s *state) { s.scheduleRenewal(testStart, true) }
	missing := func(s *state) { s.isMissing, s.restored = true, testStart }
	again := func(s *state) {
		for range 2 {
			s.isMissing = true
			s.compose(testStart)
		}
	}
	soon := func(s *state) { s.wakeAt = testStart.Add(time.Second) }
	for name, tc := range map[string]struct {
		reason string
		member Member
		change func(*state)
		want   due
	}{
		"Renewal": {"a third of the lifetime", Member{}, nil, due{20 * time.Second, false}},
		"Jitter":  {"the lifetime less the jitter", Member{Jitter: jitter}, nil, due{53 * time.Second, false}},
		"Retry":   {"a request has failed", Member{}, retry, due{time.Second, false}},
		"RetryFirst": {
			"retries are not faster", Member{}, func(s *state) { retry(s); missing(s) }, due{time.Second, false},
		},
		"Missing":     {"it is written again at once", Member{}, missing, due{0, false}},
		"MissingMore": {"it is removed again and again", Member{}, again, due{125 * time.Millisecond, false}},
		"Acting": {
			"it says that the operator is idle", Member{}, func(s *state) { s.reported = 0 }, due{0, false},
		},
		"Pausing": {
			"attempts are running", busy, func(s *state) { s.step = pauseForPeers }, due{20 * time.Second, true},
		},
		"Paused":   {"no attempt is running", Member{}, func(s *state) { s.step = pauseForPeers }, due{0, false}},
		"Expiry":   {"all peers look again then", Member{}, soon, due{time.Second, false}},
		"NoObject": {"a busy peer cannot see it", Member{}, (*state).withdraw, due{20 * time.Second, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := published(tc.member, nil)
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

// Only records of others are removed, and only by the newest object.
func TestExpiredRecordsToRemove(t *testing.T) {
	t.Parallel()
	s := published(Member{}, peersOf(9, "", nil))
	s.observe(peersOf(9, "", nil), "2", testStart.Add(time.Hour))
	if want := []string{"him"}; !cmp.Equal(want, s.expired) || s.version != "2" || !s.wakeAt.IsZero() {
		t.Errorf("want to remove %v, got %v from version %s; wakes up at %s", want, s.expired, s.version, s.wakeAt)
	}
	s.observe(peersOf(9, "", nil), "3", testStart)
	if want := testStart.Add(time.Minute); len(s.expired) > 0 || !s.wakeAt.Equal(want) {
		t.Errorf("want to wake up at %s, got %s, and to remove %v", want, s.wakeAt, s.expired)
	}
}
