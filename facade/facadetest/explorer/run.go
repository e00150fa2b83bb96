package explorer

import (
	"fmt"
	"slices"
	"time"
)

// run records the events and the results of one course.
type run struct {
	course                course
	points                []point
	lines                 []line
	attempts              []*attempt
	foreignEdits          []edit
	createdObjects        []createdObject
	objectsWithFinalizers map[string]bool // the labels of objects that had finalizers

	occurredTroubles            []trouble // the troubles of the course that have occurred
	killTimes, disturbanceTimes []time.Duration

	initialState, finalState, leftoverState state
	complete, cleared                       bool // whether finally and leftover are set
	needsRestart                            bool // a restart of the idle operator calls functions or writes
	hasForeignChanges                       bool // another client has changed state that is compared
	exhausted                               bool // the operator was ended because it did not become idle
	closed                                  bool // the course is over, and later events are ignored

	violations []violation
}

// line is one line of the history.
type line struct {
	at          time.Duration
	actor, text string
}

// String returns the line in the form of a report.
func (l line) String() string {
	return fmt.Sprintf("%12s  %-10s %s", l.at.Round(time.Millisecond), l.actor, l.text)
}

// edit is a change by another client.
type edit struct {
	label       string
	isAfterPlay bool // after the end of the play
}

// noteAt appends a line to the history. The caller holds the lock of the world.
func (r *run) noteAt(at time.Duration, who, what string) {
	if !r.closed {
		r.lines = append(r.lines, line{at, who, what})
	}
}

// insertAt inserts a line at an earlier end of the history. The caller holds the lock of the world.
func (r *run) insertAt(place int, at time.Duration, who, what string) {
	if !r.closed {
		r.lines = slices.Insert(r.lines, place, line{at, who, what})
	}
}

// violation is one detected failure. Its course is that of its run.
type violation struct {
	class   Class
	subject string
	text    string
}

// addViolation adds a violation. The caller holds the lock of the world, or judges a run that is over.
func (r *run) addViolation(class Class, subject, text string) {
	r.violations = append(r.violations, violation{class, subject, text})
}

// missedTroubles returns the troubles of the course whose places were not reached.
func (r *run) missedTroubles() (all []trouble) {
	for _, t := range r.course {
		if t.place != "" && !slices.Contains(r.occurredTroubles, t) {
			all = append(all, t)
		}
	}
	return all
}
