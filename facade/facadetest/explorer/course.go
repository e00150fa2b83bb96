package explorer

import (
	"fmt"
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
