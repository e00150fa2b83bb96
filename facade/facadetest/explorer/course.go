package explorer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// disturbance is a kind of trouble. Its text is a part of course names.
type disturbance string

const (
	cut           disturbance = "cut"         // the operator is killed
	lostAnswer    disturbance = "lost-answer" // a write takes effect, but its answer is lost
	foreignChange disturbance = "foreign"     // another client changes the object just before the write arrives
	conflict      disturbance = "409"
	failure       disturbance = "500"
	// A watch delays each event until this many later ones have arrived, or some time has passed.
	delayByOne   disturbance = "events-late-by-1"
	delayByThree disturbance = "events-late-by-3"
)

// nextLife is the place of the first write of the second life.
const nextLife = "the-next-life"

// trouble is a disturbance at one place of a run: a point for a cut, a write for other ones. Delayed watches do not
// have a place.
type trouble struct {
	kind  disturbance
	place string
}

// String returns the name, such as cut-after-write-2-of-databases/orders or 409-at-write-3-of-databases/orders.
func (t trouble) String() string {
	switch {
	case t.place == "":
		return string(t.kind)
	case t.kind == cut && t.place != nextLife:
		return "cut-" + t.place
	}
	return string(t.kind) + "-at-" + t.place
}

// course lists all troubles of one run of a scenario. The empty course is the uncut run.
type course []trouble

// String returns the name of the course. It can be parsed again.
func (c course) String() string {
	if len(c) == 0 {
		return "uncut"
	}
	parts := make([]string, 0, len(c))
	for _, t := range c {
		parts = append(parts, t.String())
	}
	return strings.Join(parts, ",")
}

// parseCourse parses the name of a course, as reported with a failure.
func parseCourse(name string) (course, error) {
	if name == "uncut" {
		return nil, nil
	}
	var c course
	for part := range strings.SplitSeq(name, ",") {
		t, ok := parseTrouble(part)
		if !ok {
			return nil, fmt.Errorf("%q is not a part of a course: copy the name from a failure", part)
		}
		c = append(c, t)
	}
	return c, nil
}

// parseTrouble parses one part of a course name.
func parseTrouble(part string) (trouble, bool) {
	if part == string(delayByOne) || part == string(delayByThree) {
		return trouble{kind: disturbance(part)}, true
	}
	// A cut has its own form, except for a cut in the second life.
	for _, d := range []disturbance{cut, lostAnswer, foreignChange, conflict, failure} {
		if place, ok := strings.CutPrefix(part, string(d)+"-at-"); ok && (d != cut || place == nextLife) {
			return trouble{d, place}, true
		}
	}
	// A cut is followed by its point without "at", because the point begins with "before", "after" or "at".
	place, ok := strings.CutPrefix(part, string(cut)+"-")
	return trouble{cut, place}, ok && place != ""
}

// eventDelay returns the number of later events for which a watch delays each event.
func (c course) eventDelay() int {
	switch {
	case slices.Contains(c, trouble{kind: delayByThree}):
		return 3
	case slices.Contains(c, trouble{kind: delayByOne}):
		return 1
	}
	return 0
}

// withoutTrouble returns the course without one of its troubles.
func (c course) withoutTrouble(i int) course { return slices.Delete(slices.Clone(c), i, i+1) }

// point is a place where a run can be cut.
type point struct {
	place string
	write *write // the write that follows the point, if any
}

// write is a place where a run can be disturbed.
type write struct {
	place       string
	canConflict bool // whether a 409 is a possible answer
}

// possibleTroubles returns the possible disturbances of the write.
func (w *write) possibleTroubles() []trouble {
	all := []trouble{{lostAnswer, w.place}, {foreignChange, w.place}, {failure, w.place}}
	if w.canConflict {
		all = append(all, trouble{conflict, w.place})
	}
	return all
}

// cutCourses returns the courses with one cut and nothing else.
func cutCourses(points []point) (all []course) {
	for _, p := range points {
		all = append(all, course{{cut, p.place}})
	}
	return all
}

// disturbedCourses returns the courses with one disturbance and without a cut.
func disturbedCourses(points []point) (all []course) {
	for _, p := range points {
		if p.write != nil {
			for _, t := range p.write.possibleTroubles() {
				all = append(all, course{t})
			}
		}
	}
	return append(all, course{{kind: delayByOne}}, course{{kind: delayByThree}})
}

// combinedCourses returns the courses with a cut and a disturbance: of the last write before the cut, or of the first
// write in the next life. Failures close to the restart are the ones most likely to matter.
func combinedCourses(points []point) (all []course) {
	// The last write before the cut is the one whose outcome the restarted process must find out.
	var last *write
	for _, p := range points {
		here := trouble{cut, p.place}
		for _, t := range (&write{place: nextLife, canConflict: true}).possibleTroubles() {
			all = append(all, course{here, t})
		}
		all = append(all, course{here, {cut, nextLife}}, course{here, {kind: delayByOne}},
			course{here, {kind: delayByThree}})
		if last != nil {
			for _, t := range last.possibleTroubles() {
				all = append(all, course{here, t})
			}
		}
		if p.write != nil {
			last = p.write
		}
	}
	return all
}

// plannedCourses returns the courses for a run with these points, simple ones first, and the number of possible
// courses.
func plannedCourses(s settings, points []point) (some []course, possible int) {
	random := rand.New(rand.NewPCG(s.seed, 0)) //nolint:gosec // it is no secret
	// The groups are ordered by their complexity.
	first := cutCourses(points)
	if s.cutsOnly {
		return sampleCourses(first, s.courses, random), len(first)
	}
	second, third := disturbedCourses(points), combinedCourses(points)
	possible = len(first) + len(second) + len(third)
	if s.courses >= possible {
		return slices.Concat(first, second, third), possible
	}
	// Cuts get at least three fifths of the courses; the rest is split between disturbances and combinations. A group
	// that is smaller than its share leaves the rest to the others.
	some = sampleCourses(first, max(s.courses*3/5, s.courses-len(second)-len(third)), random)
	some = append(some, sampleCourses(second, max((s.courses-len(some))/2, s.courses-len(some)-len(third)), random)...)
	return append(some, sampleCourses(third, s.courses-len(some), random)...), possible
}

// sampleCourses returns n random courses in their original order.
func sampleCourses(all []course, n int, random *rand.Rand) (some []course) {
	if n >= len(all) {
		return all
	}
	// The permutation selects courses without repetition.
	chosen := random.Perm(len(all))[:max(n, 0)]
	slices.Sort(chosen)
	for _, i := range chosen {
		some = append(some, all[i])
	}
	return some
}

// randomCourse returns a random course. Most courses have a cut, and some have several troubles.
func randomCourse(s settings, points []point, random *rand.Rand) course {
	var c course
	if s.cutsOnly || random.IntN(10) > 0 {
		c = append(c, trouble{cut, points[random.IntN(len(points))].place})
	}
	if random.IntN(4) == 0 {
		c = append(c, trouble{cut, points[random.IntN(len(points))].place})
	}
	others := disturbedCourses(points)
	for !s.cutsOnly && (len(c) == 0 || random.IntN(2) == 0) {
		c = append(c, others[random.IntN(len(others))]...)
	}
	// Two equal troubles in a row would have the effect of one.
	return slices.Compact(c)
}
