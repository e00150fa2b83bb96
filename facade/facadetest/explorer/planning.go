package explorer

import (
	"math/rand/v2"
	"slices"
)

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
