package explorer

import (
	"fmt"
	"slices"
	"strings"
)

// disturbance is what goes wrong.
type disturbance string

const (
	cut        disturbance = "cut"         // the operator is killed
	lostAnswer disturbance = "lost-answer" // a write is done, and its answer lost
	foreign    disturbance = "foreign"     // somebody else changes the object just before the write arrives
	conflict   disturbance = "409"
	failure    disturbance = "500"
	// the watch shows an event only after so many more have come, or after some time
	lateOne   disturbance = "events-late-by-1"
	lateThree disturbance = "events-late-by-3"
)

// nextLife is the place of the first write of the life after the first.
const nextLife = "the-next-life"

// trouble is a disturbance at one place of a run: a point for a cut, a write for others, nowhere for those of watches.
type trouble struct {
	what  disturbance
	place string
}

// String is its name, such as cut-after-write-2-of-databases/orders or 409-at-write-3-of-databases/orders.
func (t trouble) String() string {
	switch {
	case t.place == "":
		return string(t.what)
	case t.what == cut && t.place != nextLife:
		return "cut-" + t.place
	}
	return string(t.what) + "-at-" + t.place
}

// course is one way in which a scenario can go: all that goes wrong. None is the uncut run.
type course []trouble

// String is its name, from which it is parsed.
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

// parse reads the name of a course.
func parse(name string) (course, error) {
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

func parseTrouble(part string) (trouble, bool) {
	if part == string(lateOne) || part == string(lateThree) {
		return trouble{what: disturbance(part)}, true
	}
	for _, d := range []disturbance{cut, lostAnswer, foreign, conflict, failure} {
		if place, ok := strings.CutPrefix(part, string(d)+"-at-"); ok && (d != cut || place == nextLife) {
			return trouble{d, place}, true
		}
	}
	place, ok := strings.CutPrefix(part, string(cut)+"-")
	return trouble{cut, place}, ok && place != ""
}

// late is how many later events a watch waits for.
func (c course) late() int {
	switch {
	case slices.Contains(c, trouble{what: lateThree}):
		return 3
	case slices.Contains(c, trouble{what: lateOne}):
		return 1
	}
	return 0
}

// without is the course but for one part.
func (c course) without(i int) course { return slices.Delete(slices.Clone(c), i, i+1) }
