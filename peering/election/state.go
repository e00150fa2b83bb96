package election

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// releasedSeconds is the lease duration of a released Lease, as electors write it. A Lease that another client has
// emptied keeps the duration of its holder.
const releasedSeconds = 1

// The logged states that a later state depends on.
const (
	holding = "holding"
	failed  = "failed"
)

// state is the state of an election. The lock of the election guards it.
type state struct {
	seen     *resourcelock.LeaderElectionRecord // the newest known record; nil without a Lease
	version  string                             // of the Lease with this record
	since    time.Time                          // since when the Lease has this version
	sent     []time.Time                        // the renewal times of own records that the Lease may have
	isHolder bool                               // this process holds the Lease
	term     int                                // counts how often this process got the Lease
	opens    time.Time                          // when the holder may act
	isOpen   bool                               // the part of the gate is open
	limited  bool                               // the part has a limit of writes
	elects   bool                               // the process takes part, or took part since it last followed peers
	decided  time.Time                          // since when a peering object decides; zero if none does
	begun    bool
	visible  bool   // the Lease was read or created once
	settled  bool   // the state was known once
	failure  error  // of the last request; nil after a success
	logged   string // the last logged state, to log each once
}

// observeRecord stores the record that the API server has answered; nil if there is no Lease. If this process held the
// Lease, but another one has written it since, the gate closes: another process may act as soon as the own permission
// to write has ended. The holder does not show that: another client may have changed it, and changed it back.
func (e *Election) observeRecord(record *resourcelock.LeaderElectionRecord, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.version != version {
		e.since = time.Now()
	}
	e.seen, e.version = record, version
	e.failure, e.settled, e.visible = nil, true, e.visible || record != nil
	isOwn := record != nil && record.HolderIdentity == e.Identity
	switch {
	case e.isHolder && isOwn && slices.ContainsFunc(e.sent, record.RenewTime.Time.Equal):
		// The API server ends requests after a minute: older ones cannot take effect any more.
		e.sent = slices.DeleteFunc(e.sent, func(at time.Time) bool {
			return !at.Equal(record.RenewTime.Time) && time.Since(at) > time.Minute
		})
	case e.isHolder:
		e.isHolder = false
		e.closePart()
		e.logOnce("lost", func() {
			logging.Warn(e.log, "Pausing operations, as the Lease was taken over, changed or removed", "holder",
				holderOf(record))
		})
	case !isOwn && holderOf(record) != "":
		e.logOnce("held by "+record.HolderIdentity, func() {
			e.log.Info("Another process holds the Lease; no handlers are called here", "holder", record.HolderIdentity)
		})
	}
}

// holderOf returns the identity of the holder, or "".
func holderOf(record *resourcelock.LeaderElectionRecord) string {
	if record == nil {
		return ""
	}
	return record.HolderIdentity
}

// confirmRecord stores that the API server has confirmed the own record, and extends the permission to write. It
// replaces the record that was seen before.
//
// A former holder may not have noticed that it is replaced, if another client has changed or removed the Lease. It may
// act for a lease duration after its last renewal, which was not later than the first observation of the record before.
// Only a holder that has released the Lease does not act any more.
func (e *Election) confirmRecord(sent time.Time, record resourcelock.LeaderElectionRecord, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.limited = true
	e.part.AllowWritesUntil(peering.RenewalEnd(sent, time.Duration(record.LeaseDurationSeconds)*time.Second))
	if !e.isHolder {
		e.opens = e.since.Add(leaseDuration)
		switch {
		case e.seen == nil:
			e.opens = now.Add(leaseDuration)
		case e.seen.HolderIdentity == "" && e.seen.LeaseDurationSeconds == releasedSeconds:
			e.opens = now
		}
		e.term++
		e.scheduleOpening(e.term, e.opens.Sub(now))
	} else if e.logged == failed {
		e.logged = holding
		e.log.Info("Renewed the Lease again, and no other process had it")
	}
	e.isHolder, e.sent = true, []time.Time{storedTime(record)}
	e.seen, e.version, e.since = &record, version, now
	e.failure, e.settled, e.visible = nil, true, true
}

// noteUnconfirmed stores that the Lease may have this record, although the API server has not confirmed it.
func (e *Election) noteUnconfirmed(record resourcelock.LeaderElectionRecord) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isHolder {
		e.sent = append(e.sent, storedTime(record))
	}
}

// storedTime returns the renewal time of a record as the API server stores it.
func storedTime(record resourcelock.LeaderElectionRecord) time.Time {
	return record.RenewTime.Time.Truncate(time.Microsecond)
}

// scheduleOpening opens the part of the gate after the delay, if the process still holds the Lease in this term then.
func (e *Election) scheduleOpening(term int, delay time.Duration) {
	if delay <= 0 {
		e.openPart()
		return
	}
	e.logOnce("waits", func() {
		e.log.Info("Got the Lease; waiting until no former holder can act any more", "for",
			delay.Round(time.Second).String())
	})
	time.AfterFunc(delay, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.isHolder && e.term == term {
			e.openPart()
		}
	})
}

// openPart lets the operator act. The caller holds the lock, as for the following functions.
func (e *Election) openPart() {
	e.logOnce(holding, func() { e.log.Info("Holding the Lease; handlers are called") })
	e.isOpen = true
	e.part.Set(false)
}

// openWithoutLimit lets the operator act without the Lease.
func (e *Election) openWithoutLimit() {
	e.isOpen, e.settled, e.limited, e.failure, e.logged = true, true, false, nil, ""
	e.part.AllowWritesUntil(time.Time{})
	e.part.Set(false)
}

// closePart closes the part of the gate. Running attempts may end within the permission to write.
func (e *Election) closePart() {
	e.isOpen = false
	e.part.Set(true)
	e.OnTakeover()
}

// logOnce logs a state unless it was the last one to be logged.
func (e *Election) logOnce(state string, log func()) {
	if e.logged != state {
		e.logged = state
		log()
	}
}

// closeAtOnce ends the permission to write of an operator that acted without the Lease: the holder of the Lease may act
// already.
func (e *Election) closeAtOnce() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limited = true
	e.part.AllowWritesUntil(time.Now())
	e.closePart()
}

// dropLimit removes the limit of writes of a process that does not hold the Lease when its last attempt has ended. The
// other parts of the operator may write, such as admission handlers.
func (e *Election) dropLimit() {
	idle := e.Busy() == 0
	e.mu.Lock()
	defer e.mu.Unlock()
	if idle && e.limited && !e.isHolder && !e.isOpen {
		e.limited = false
		e.part.AllowWritesUntil(time.Time{})
	}
}

// CheckReady returns an error until it is known whether the operator may act, and while it has no right on the Lease.
// An operator that waits for the Lease is ready.
func (e *Election) CheckReady() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.begun && e.failure != nil && (!e.visible || apierrors.IsForbidden(e.failure)):
		return fmt.Errorf("the Lease %s cannot be used: %w", e.Lease, e.failure)
	case e.begun && !e.settled:
		return fmt.Errorf("it is not known yet which process holds the Lease %s", e.Lease)
	}
	return nil
}

// DescribeStandby returns why the operator does not act, or "" if the election lets it act.
func (e *Election) DescribeStandby() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	holder := holderOf(e.seen)
	switch {
	case e.isHolder && e.isOpen && e.failure != nil:
		return fmt.Sprintf("The Lease %s cannot be renewed: %v.", e.Lease, e.failure)
	case e.isOpen:
		return ""
	case e.isHolder:
		return fmt.Sprintf("It has got the Lease %s. A former holder may act until %s.", e.Lease,
			e.opens.UTC().Format(time.RFC3339))
	case e.failure != nil:
		return fmt.Sprintf("The Lease %s cannot be used: %v.", e.Lease, e.failure)
	case holder != "":
		return fmt.Sprintf("%s holds the Lease %s.", holder, e.Lease)
	default:
		return fmt.Sprintf("It does not hold the Lease %s yet.", e.Lease)
	}
}
