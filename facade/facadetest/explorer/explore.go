package explorer

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"
)

// maxCoursesAfterFailure limits the courses that are played after the first failed one, unless all were requested.
const maxCoursesAfterFailure = 10

// Explore plays a scenario on many courses. It fails the test with a [Report] of all violations: handlers that are
// lost, repeated or concurrent, objects and outside systems in a different state, leaks, and scenarios that do not
// become idle. See [Class]. After the first failed course, ten more are played.
func Explore(t *testing.T, scenario func() Scenario, options ...Option) {
	t.Helper()
	report := Search(t, scenario, options...)
	if len(report.Violations) > 0 {
		t.Error(report)
		return
	}
	t.Log(report.summaryLine())
}

// Search is like [Explore], but returns the report instead of failing the test. It only fails the test for invalid
// options.
func Search(t *testing.T, scenario func() Scenario, options ...Option) *Report {
	t.Helper()
	s, err := collectSettings(options)
	if err != nil {
		t.Fatalf("explorer: %v", err)
	}
	e := &exploration{t: t, scenario: scenario, settings: s, findings: map[string]*finding{}}
	e.report.Test, e.report.Seed = t.Name(), s.seed
	e.playCourses()
	return e.completeReport()
}

// exploration is the state of one search.
type exploration struct {
	t           *testing.T
	scenario    func() Scenario
	settings    settings
	uncut       *run
	points      []point         // all points that any course has reached
	knownPlaces map[string]bool // the places of the points
	findings    map[string]*finding
	findingKeys []string // the keys of found, in the order of their discovery
	report      Report
}

// finding is a violation, with the shortest course so far that shows it.
type finding struct {
	Violation
	run     *run
	courses int
}

// playCourses plays the uncut run twice, then the courses.
func (e *exploration) playCourses() {
	// The uncut run defines the expected results and the points.
	e.uncut = e.playCourse(nil)
	e.settings.needsRestart = e.uncut.needsRestart
	e.uncut.judgeAll(nil, e.settings)
	e.addFindings(e.uncut)
	if len(e.findings) > 0 {
		return // every course would show the same
	}
	// A course given by name is still compared with a repeatable uncut run.
	if e.settings.isSingleCourse && len(e.settings.singleCourse) == 0 || !e.isRepeatable(e.playCourse(nil)) {
		return
	}
	var courses []course
	// Courses are planned once, from the points of the uncut run.
	courses, e.report.Possible = plannedCourses(e.settings, e.uncut.points)
	switch {
	case e.settings.isSingleCourse:
		for _, missed := range e.playAndJudge(e.settings.singleCourse).missedTroubles() {
			e.t.Errorf("explorer: the course never comes to %s", missed)
		}
	case e.settings.budget > 0:
		e.playRandomCourses()
	default:
		e.playAll(courses)
	}
}

// playCourse plays one course and collects its new points. Random courses use the points of all earlier ones.
func (e *exploration) playCourse(c course) *run {
	r := playScenario(e.t, e.scenario, e.settings, c)
	if e.knownPlaces == nil {
		e.knownPlaces = map[string]bool{}
	}
	for _, p := range r.points {
		if !e.knownPlaces[p.place] {
			e.knownPlaces[p.place] = true
			e.points = append(e.points, p)
		}
	}
	return r
}

// isRepeatable reports whether a second uncut run equals the first. If it does not, the differences on courses would
// not prove anything.
func (e *exploration) isRepeatable(again *run) bool {
	again.judgeAll(e.uncut, e.settings)
	// The violations of a comparison are all reported in one class.
	for i, v := range again.violations {
		v.Class, v.Text = Unrepeatable, "two runs without any cut differ, so nothing can be compared: "+v.Text
		again.violations[i] = v
	}
	e.addFindings(again)
	return len(again.violations) == 0
}

// playAndJudge plays a course and adds its violations to the findings.
func (e *exploration) playAndJudge(c course) *run {
	r := e.playCourse(c)
	e.report.Played++
	r.judgeAll(e.uncut, e.settings)
	e.addFindings(r)
	return r
}

// playAll plays the courses in their order. It stops some courses after the first failure, because more failures
// rarely add information.
func (e *exploration) playAll(courses []course) {
	failed := 0 // the number of courses since the first failure
	for _, c := range courses {
		if len(e.playAndJudge(c).violations) > 0 || failed > 0 {
			failed++
		}
		if failed > maxCoursesAfterFailure && e.settings.courses < allCourses {
			return
		}
	}
}

// playRandomCourses plays random courses until the time budget is used. It plays at least one.
func (e *exploration) playRandomCourses() {
	random := rand.New(rand.NewPCG(e.settings.seed, 1)) //nolint:gosec // it is no secret
	for begun := time.Now(); len(e.points) > 0; {
		e.playAndJudge(randomCourse(e.settings, e.points, random))
		if time.Since(begun) >= e.settings.budget {
			return
		}
	}
}

// addFindings merges the violations of a run into the findings.
func (e *exploration) addFindings(r *run) {
	seen := map[string]bool{}
	for _, v := range r.violations {
		key := v.findingKey()
		if seen[key] {
			continue
		}
		seen[key] = true
		known := e.findings[key]
		if known == nil {
			known = &finding{Violation: v, run: r}
			e.findings[key] = known
			e.findingKeys = append(e.findingKeys, key)
		}
		// A shorter course is easier to understand, so it replaces a longer one.
		if known.courses++; len(r.course) < len(known.run.course) {
			known.Violation, known.run = v, r
		}
	}
}

// findingKey returns the identity of a violation. It is the same for all objects with a generated name.
func (v Violation) findingKey() string {
	return string(v.Class) + " " + numberPattern.ReplaceAllString(v.Subject, "<n>")
}

// numberPattern matches the placeholders of generated names.
var numberPattern = regexp.MustCompile(`<\d+>`)

// completeReport shortens the courses of the findings and completes the report.
func (e *exploration) completeReport() *Report {
	e.report.Points = len(e.uncut.points)
	for _, key := range e.findingKeys {
		if !e.settings.isSingleCourse {
			e.shortenCourse(e.findings[key], key)
		}
		f := e.findings[key]
		f.Course, f.Courses, f.History = f.run.course.String(), f.courses, f.run.historyLines(f.Class)
		e.report.Violations = append(e.report.Violations, f.Violation)
	}
	return &e.report
}

// shortenCourse removes troubles from the course of a finding as long as the violation remains. Each attempt plays the
// shorter course.
func (e *exploration) shortenCourse(f *finding, key string) {
	for i := 0; i < len(f.run.course) && len(f.run.course) > 1; {
		r := e.playCourse(f.run.course.withoutTrouble(i))
		r.judgeAll(e.uncut, e.settings)
		same := func(v Violation) bool { return v.findingKey() == key }
		if at := slices.IndexFunc(r.violations, same); at < 0 {
			i++
		} else {
			f.Violation, f.run = r.violations[at], r
		}
	}
}
