package interop_test

import (
	"fmt"
	"strings"
)

// Where in a change an operator is killed.
const (
	killBeforeChange = "unseen"  // the change comes when it is dead
	killInFirst      = "first"   // its first handler is running
	killBetween      = "between" // the first has succeeded, the second has failed for now
	killInSecond     = "second"  // the first has succeeded, the second is running
	killAfterAll     = "done"    // all is done
)

// What a leg of a row does with the object, other than to give its field a value.
const (
	creation = "creation"
	deletion = "deletion"
	noChange = "" // go on with what the former leg has begun
)

// leg is the life of one operator with one object: it completes the work of the life before, begins a change, and is
// killed.
type leg struct {
	change          string
	killPoint       string
	changeAfterKill string // what becomes of the object when the operator is dead already: a value, or its deletion
}

// row is the story of one object, whose field is "a" in the beginning. The operators take turns with its legs; then one
// more life completes the work.
type row struct {
	name          string
	labels        map[string]any
	plan          map[string]string // what handlers do in a leg, by "<leg>/<handler>", beyond what the points say
	legs          []leg
	want          []string // the calls that are not cut, in any order
	allowsRepeats bool     // calls may be repeated, by a quirk of Kopf's own
}

// legCount is how many lives there are before the last one.
const legCount = 3

// leg gives one of them; there is nothing to do in those that the row does not have.
func (r row) leg(number int) leg {
	if number < len(r.legs) {
		return r.legs[number]
	}
	return leg{noChange, killAfterAll, ""}
}

// stateDuring is the value with which handlers are called in that leg, and whether the object is being deleted there.
func (r row) stateDuring(number int) (value string, deleted bool) {
	value = "a"
	for i := range number + 1 {
		if i > 0 {
			value, deleted = applyChange(value, deleted, r.leg(i-1).changeAfterKill)
		}
		value, deleted = applyChange(value, deleted, r.leg(i).change)
	}
	return value, deleted
}

func applyChange(value string, deleted bool, change string) (string, bool) {
	switch change {
	case creation, noChange:
		return value, deleted
	case deletion:
		return value, true
	default:
		return change, deleted
	}
}

// at the beginning of a leg, before its own change.
func (r row) stateBefore(number int) (value string, deleted bool) {
	if number == 0 {
		return "a", false
	}
	value, deleted = r.stateDuring(number - 1)
	return applyChange(value, deleted, r.leg(number-1).changeAfterKill)
}

// idPrefix says by what the ids of the handlers begin that are called in that leg.
func (r row) idPrefix(number int) string {
	_, deleted := r.stateDuring(number)
	switch {
	case deleted:
		return "d"
	case r.leg(0).change == creation && (number == 0 || r.leg(number).change == noChange):
		return "c"
	default:
		return "u"
	}
}

// addPlans adds the plans of the handlers in that leg, other than returning.
func (r row) addPlans(number int, into map[string]string) {
	for id, does := range r.plan {
		if handler, ok := strings.CutPrefix(id, fmt.Sprint(number, "/")); ok {
			into[r.name+"/"+handler+"/a"] = does
		}
	}
	value, _ := r.stateDuring(number)
	which := r.name + "/" + r.idPrefix(number)
	switch r.leg(number).killPoint {
	case killInFirst:
		into[which+"1/"+value] = "hang"
	case killBetween:
		into[which+"2/"+value] = "later"
	case killInSecond:
		into[which+"2/"+value] = "hang"
	}
}

// createCalls and updated are the calls of one whole change.
func createCalls() []string { return []string{"c1 create →a", "c2 create →a", "f create →a"} }

func updateCalls(from, to string) []string {
	var all []string
	for _, id := range []string{"u1", "u2", "f"} {
		all = append(all, fmt.Sprintf("%s update %s→%s", id, from, to))
	}
	return all
}

func deleteCalls(value string) []string {
	return []string{fmt.Sprintf("d1 delete %[1]s→%[1]s", value), fmt.Sprintf("d2 delete %[1]s→%[1]s", value)}
}

// uninterruptedCalls returns the calls of a single operator that is never stopped for the changes of the row.
func (r row) uninterruptedCalls() []string {
	all, value := createCalls(), "a"
	for _, one := range r.legs {
		switch one.change {
		case creation, noChange:
		case deletion:
			all = append(all, deleteCalls(value)...)
		default:
			all = append(all, updateCalls(value, one.change)...)
			value = one.change
		}
	}
	return all
}

// rowName is the name of a row's object.
func rowName(words ...string) string { return strings.Join(words, "-") }
