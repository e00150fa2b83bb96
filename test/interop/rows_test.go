package interop_test

import (
	"fmt"
	"strings"
)

// Where in a change an operator is killed.
const (
	unseen  = "unseen"  // the change comes when it is dead
	first   = "first"   // its first handler is running
	between = "between" // the first has succeeded, the second has failed for now
	second  = "second"  // the first has succeeded, the second is running
	done    = "done"    // all is done
)

// What a leg of a row does with the object, other than to give its field a value.
const (
	creation = "creation"
	deletion = "deletion"
	onward   = "" // go on with what the former leg has begun
)

// leg is the life of one operator with one object: it completes the work of the life before, begins a change, and is
// killed.
type leg struct {
	change string
	at     string
	after  string // what becomes of the object when the operator is dead already: a value, or its deletion
}

// row is the story of one object, whose field is "a" in the beginning. The operators take turns with its legs; then one
// more life completes the work.
type row struct {
	name   string
	labels map[string]any
	plan   map[string]string // what handlers do in a leg, by "<leg>/<handler>", beyond what the points say
	legs   []leg
	want   []string // the calls that are not cut, in any order
	loose  bool     // calls may be repeated, by a quirk of Kopf's own
}

// legs is how many lives there are before the last one.
const legs = 3

// leg gives one of them; there is nothing to do in those that the row does not have.
func (r row) leg(number int) leg {
	if number < len(r.legs) {
		return r.legs[number]
	}
	return leg{onward, done, ""}
}

// during is the value with which handlers are called in that leg, and whether the object is being deleted there.
func (r row) during(number int) (value string, deleted bool) {
	value = "a"
	for i := range number + 1 {
		if i > 0 {
			value, deleted = changed(value, deleted, r.leg(i-1).after)
		}
		value, deleted = changed(value, deleted, r.leg(i).change)
	}
	return value, deleted
}

func changed(value string, deleted bool, change string) (string, bool) {
	switch change {
	case creation, onward:
		return value, deleted
	case deletion:
		return value, true
	default:
		return change, deleted
	}
}

// at the beginning of a leg, before its own change.
func (r row) beginning(number int) (value string, deleted bool) {
	if number == 0 {
		return "a", false
	}
	value, deleted = r.during(number - 1)
	return changed(value, deleted, r.leg(number-1).after)
}

// open says by what the ids of the handlers begin that are called in that leg.
func (r row) open(number int) string {
	_, deleted := r.during(number)
	switch {
	case deleted:
		return "d"
	case r.leg(0).change == creation && (number == 0 || r.leg(number).change == onward):
		return "c"
	default:
		return "u"
	}
}

// planned adds the plans of the handlers in that leg, other than returning.
func (r row) planned(number int, into map[string]string) {
	for id, does := range r.plan {
		if handler, ok := strings.CutPrefix(id, fmt.Sprint(number, "/")); ok {
			into[r.name+"/"+handler+"/a"] = does
		}
	}
	value, _ := r.during(number)
	which := r.name + "/" + r.open(number)
	switch r.leg(number).at {
	case first:
		into[which+"1/"+value] = "hang"
	case between:
		into[which+"2/"+value] = "later"
	case second:
		into[which+"2/"+value] = "hang"
	}
}

// created and updated are the calls of one whole change.
func created() []string { return []string{"c1 create →a", "c2 create →a", "f create →a"} }

func updated(from, to string) []string {
	var all []string
	for _, id := range []string{"u1", "u2", "f"} {
		all = append(all, fmt.Sprintf("%s update %s→%s", id, from, to))
	}
	return all
}

func deleting(value string) []string {
	return []string{fmt.Sprintf("d1 delete %[1]s→%[1]s", value), fmt.Sprintf("d2 delete %[1]s→%[1]s", value)}
}

// calm returns the calls of a single operator that is never stopped for the changes of the row.
func (r row) calm() []string {
	all, value := created(), "a"
	for _, one := range r.legs {
		switch one.change {
		case creation, onward:
		case deletion:
			all = append(all, deleting(value)...)
		default:
			all = append(all, updated(value, one.change)...)
			value = one.change
		}
	}
	return all
}

// named is the name of a row's object.
func named(words ...string) string { return strings.Join(words, "-") }
