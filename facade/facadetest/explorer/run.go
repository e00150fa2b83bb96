package explorer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
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

	violations []Violation
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

// addViolation adds a violation, whose course is that of the run. The caller holds the lock of the world, or judges a
// run that is over.
func (r *run) addViolation(class Class, subject, text string) {
	r.violations = append(r.violations, Violation{Class: class, Subject: subject, Text: text})
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

// environment is one course in progress: the API server, the play, the lives of the operator, and the outside systems.
type environment struct {
	tb        *courseTB
	settings  settings
	scenario  Scenario
	server    *memapi.Server
	client    client.Client // that of the play
	startTime time.Time

	operatorStarted chan struct{} // closed when the operator has started
	stopping, ended chan struct{} // closed to stop the operator, and when it has stopped
	courseEnded     chan struct{} // closed when the course is over; blocked effects then return
	effectSemaphore chan struct{} // a semaphore for one effect at a time

	// mu guards the fields below, including the run.
	mu                sync.Mutex
	lifeCount         int
	currentLife       *Life // the current one
	counts            map[string]int
	lastActivity      time.Time // the time of the last activity
	lastBackgroundEnd time.Time // when the last call of a daemon or timer ended
	activeAttempts    map[*attempt]bool
	names             names
	run               *run
}

// errInjected is the cause of errors that a disturbance produces, so that logs show their origin.
var errInjected = errors.New("this is planned by the explorer")

// Life is one process of the operator, from its start to its kill. Fakes of outside systems use it to identify their
// caller.
type Life struct {
	number      int
	environment *environment
	connection  *memapi.Connection
	runner      *facadetest.Runner
	ready       <-chan struct{}
	started     chan struct{} // closed when runner is set
	killed      chan struct{}
	dead        bool // guarded by the lock of the world
	hasWritten  bool // guarded by the lock of the world
}

// Number returns the number of the life within the course, starting with 1.
func (l *Life) Number() int { return l.number }

// attempt is one call of a handler.
type attempt struct {
	change
	retry      int
	essence    string // the essence of the object at the time of the call
	family     handlers.Family
	lifeNumber int // the number of the life

	start, end time.Duration
	done       bool
	outcome    string
	err        error
}

// violationSubject returns the subject of a violation that concerns the attempt.
func (a *attempt) violationSubject() string { return a.handler + " (" + a.reason + ") for " + a.object }

// handlesChange reports whether the handler was called for a change. Daemons and timers are not.
func (a *attempt) handlesChange() bool { return a.family != handlers.Background }

// String returns the attempt as it appears in a history.
func (a *attempt) String() string {
	about := ""
	if a.object != "" {
		about = " for " + a.object
	}
	if a.reason != "" {
		about = " (" + a.reason + ")" + about
	}
	return fmt.Sprintf("%s #%d%s", a.handler, a.retry+1, about)
}

// createdObject is an object that the play has created.
type createdObject struct {
	object *unstructured.Unstructured
	label  string
}

// otherClientAnnotation is the annotation that marks a write of another client. It is not part of the essence, so the
// write does not call handlers.
const otherClientAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// change identifies one change of one object for one handler. Attempts with an equal change belong together.
type change struct {
	object, handler, reason, diff string
	life                          int // for resume handlers only, which run again in each life
}

// Violation is one detected failure, with the shortest course that shows it.
type Violation struct {
	Class Class
	// Subject is the handler or the object of the violation. It is empty if the violation is about the whole run.
	Subject string
	// Text describes the violation, including differences.
	Text string
	// Course is the name of the course, for -explorer.course.
	Course string
	// Courses is the number of courses that show the violation.
	Courses int
	// History lists the events of the course, one line for each.
	History []string
}

// Class is the kind of a violation.
type Class string

// The classes of violations.
const (
	// Lost: a handler did not end as in the uncut run, or ended with another outcome.
	Lost Class = "lost"
	// Repeated: a handler ran more often than the troubles of the course explain. An attempt that was cut off, or whose
	// outcome was not written, explains one more.
	Repeated Class = "repeated"
	// Concurrent: two attempts of a handler ran for one object at the same time.
	Concurrent Class = "concurrent"
	// Different: an object differs from that of the uncut run, is missing, or does not exist in the uncut run.
	Different Class = "different object"
	// OutsideDifferent: an outside system differs from that of the uncut run.
	OutsideDifferent Class = "different outside"
	// Overwritten: a concurrent change of another client was lost. Also known as a lost update.
	Overwritten Class = "lost update"
	// Leaked: something remains after all objects of the play were deleted.
	Leaked Class = "leaked"
	// Restless: the scenario does not become idle.
	Restless Class = "restless"
	// Broken: the operator ended without being killed, or the play failed.
	Broken Class = "broken"
	// Unrepeatable: two uncut runs differ, so courses cannot be compared with them.
	Unrepeatable Class = "unrepeatable"
)
