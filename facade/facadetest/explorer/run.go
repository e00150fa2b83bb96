package explorer

import (
	"fmt"
	"slices"
	"time"
)

// run is what has happened on one course.
type run struct {
	course   course
	points   []point
	lines    []line
	attempts []*attempt
	foreign  []edit
	created  []created
	held     map[string]bool // the objects that had finalizers

	struck           []trouble // of the course
	kills, disturbed []time.Duration

	beginning, finally, leftover state
	complete, cleared            bool // there is finally, there is leftover
	resumes                      bool // a start calls functions, or writes, though the operator was idle
	strange                      bool // another client has changed the compared state
	exhausted                    bool // it was ended
	closed                       bool // nothing more counts

	violations []violation
}

// line is one of the history.
type line struct {
	at        time.Duration
	who, what string
}

// String is the line as it is reported.
func (l line) String() string {
	return fmt.Sprintf("%12s  %-10s %s", l.at.Round(time.Millisecond), l.who, l.what)
}

// edit is a write of somebody else.
type edit struct {
	uid, label string
	late       bool // after the play
}

func (r *run) noteAt(at time.Duration, who, what string) {
	if !r.closed {
		r.lines = append(r.lines, line{at, who, what})
	}
}

// insertAt adds a line at a place that was the end of the history before.
func (r *run) insertAt(place int, at time.Duration, who, what string) {
	if !r.closed {
		r.lines = slices.Insert(r.lines, place, line{at, who, what})
	}
}

// violation is one thing that must not be.
type violation struct {
	class   Class
	subject string
	text    string
}

func (r *run) violate(class Class, subject, text string) {
	r.violations = append(r.violations, violation{class, subject, text})
}

// missed are the troubles of the course that did not come.
func (r *run) missed() (all []trouble) {
	for _, t := range r.course {
		if t.place != "" && !slices.Contains(r.struck, t) {
			all = append(all, t)
		}
	}
	return all
}
