package explorer

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"time"
)

// mostAfter is how many courses are played after the first one that has failed, unless all are wanted.
const mostAfter = 10

// Explore plays a scenario on many courses, and fails the test with a [Report] of what must not be: handlers that are
// lost, repeated or run twice at once, objects and outside systems that become something else, leaks, unrest: see
// [Class]. When a course has failed, ten more are played.
func Explore(t *testing.T, scenario func() Scenario, options ...Option) {
	t.Helper()
	report := Search(t, scenario, options...)
	if len(report.Violations) > 0 {
		t.Error(report)
		return
	}
	t.Log(report.summary())
}

// Search is [Explore] for those who judge the report themselves. The test fails for wrong options only.
func Search(t *testing.T, scenario func() Scenario, options ...Option) *Report {
	t.Helper()
	s, err := collect(options)
	if err != nil {
		t.Fatalf("explorer: %v", err)
	}
	e := &exploration{t: t, scenario: scenario, settings: s, found: map[string]*finding{}}
	e.report.Test, e.report.Seed = t.Name(), s.seed
	e.search()
	return e.conclude()
}

// exploration is one search under way.
type exploration struct {
	t        *testing.T
	scenario func() Scenario
	settings settings
	uncut    *run
	points   []point         // that were reached on any course
	known    map[string]bool // their places
	found    map[string]*finding
	order    []string // the keys of found
	report   Report
}

// finding is a violation, with the shortest course so far.
type finding struct {
	violation
	run     *run
	courses int
}

// search plays the courses.
func (e *exploration) search() {
	e.uncut = e.play(nil)
	e.settings.resumes = e.uncut.resumes
	e.uncut.judge(nil, e.settings)
	e.add(e.uncut)
	if len(e.found) > 0 {
		return // all courses would show it
	}
	if e.settings.alone && len(e.settings.given) == 0 || !e.compare(e.play(nil)) {
		return
	}
	var courses []course
	courses, e.report.Possible = planned(e.settings, e.uncut.points)
	switch {
	case e.settings.alone:
		for _, missed := range e.follow(e.settings.given).missed() {
			e.t.Errorf("explorer: the course never comes to %s", missed)
		}
	case e.settings.budget > 0:
		e.wander()
	default:
		e.followAll(courses)
	}
}

// play plays one course, and notes its points.
func (e *exploration) play(c course) *run {
	r := play(e.t, e.scenario, e.settings, c)
	if e.known == nil {
		e.known = map[string]bool{}
	}
	for _, p := range r.points {
		if !e.known[p.place] {
			e.known[p.place] = true
			e.points = append(e.points, p)
		}
	}
	return r
}

// compare looks whether a second uncut run is the same.
func (e *exploration) compare(again *run) bool {
	again.judge(e.uncut, e.settings)
	for i, v := range again.violations {
		again.violations[i] = violation{
			Unrepeatable, v.subject, "two runs without any cut differ, so nothing can be compared: " + v.text,
		}
	}
	e.add(again)
	return len(again.violations) == 0
}

// follow plays a course, and judges it.
func (e *exploration) follow(c course) *run {
	r := e.play(c)
	e.report.Played++
	r.judge(e.uncut, e.settings)
	e.add(r)
	return r
}

// followAll follows one course after the other, unless enough has failed.
func (e *exploration) followAll(courses []course) {
	failed := 0 // the courses since the first one
	for _, c := range courses {
		if len(e.follow(c).violations) > 0 || failed > 0 {
			failed++
		}
		if failed > mostAfter && e.settings.courses < everything {
			return
		}
	}
}

// wander follows courses at random until the time is over.
func (e *exploration) wander() {
	random := rand.New(rand.NewPCG(e.settings.seed, 1)) //nolint:gosec // it is no secret
	for begun := time.Now(); len(e.points) > 0; {
		e.follow(atRandom(e.settings, e.points, random))
		if time.Since(begun) >= e.settings.budget {
			return
		}
	}
}

// add keeps what a run has shown.
func (e *exploration) add(r *run) {
	for _, key := range r.keys() {
		v := r.violationOf(key)
		known := e.found[key]
		if known == nil {
			known = &finding{violation: v, run: r}
			e.found[key] = known
			e.order = append(e.order, key)
		}
		if known.courses++; len(r.course) < len(known.run.course) {
			known.violation, known.run = v, r
		}
	}
}

// keys are what is violated, each once.
func (r *run) keys() (all []string) {
	seen := map[string]bool{}
	for _, v := range r.violations {
		if key := v.key(); !seen[key] {
			seen[key] = true
			all = append(all, key)
		}
	}
	return all
}

// key is the same for all objects with a generated name.
func (v violation) key() string {
	return string(v.class) + " " + numbers.ReplaceAllString(v.subject, "<n>")
}

var numbers = regexp.MustCompile(`<\d+>`)

func (r *run) violationOf(key string) violation {
	for _, v := range r.violations {
		if v.key() == key {
			return v
		}
	}
	return violation{}
}

// conclude looks for shorter courses, and writes the report.
func (e *exploration) conclude() *Report {
	e.report.Points = len(e.uncut.points)
	for _, key := range e.order {
		if !e.settings.alone {
			e.shorten(e.found[key], key)
		}
		f := e.found[key]
		e.report.Violations = append(e.report.Violations, Violation{
			Class: f.class, Subject: f.subject, Text: f.text, Course: f.run.course.String(), Courses: f.courses,
			History: f.run.history(f.class),
		})
	}
	return &e.report
}

// shorten leaves out of a course what it does not need.
func (e *exploration) shorten(f *finding, key string) {
	for i := 0; i < len(f.run.course) && len(f.run.course) > 1; {
		r := e.play(f.run.course.without(i))
		r.judge(e.uncut, e.settings)
		if v := r.violationOf(key); v.class == "" {
			i++
		} else {
			f.violation, f.run = v, r
		}
	}
}
