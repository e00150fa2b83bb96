package explorer_test

import "fmt"

// moment is what a point is at.
type moment int

const (
	beforeWrite moment = iota // the request is sent, and never arrives
	afterWrite                // the request takes effect, and its answer never arrives
	atReturn                  // a handler has returned, and nothing is written of it
)

// point is a place in a run, counted over all lives of the operator from 1. The zero value is nowhere.
type point struct {
	moment moment
	number int
}

func (p point) String() string {
	if p.number == 0 {
		return "nowhere"
	}
	return fmt.Sprintf("%s%d", [...]string{"before-write-", "after-write-", "return-"}[p.moment], p.number)
}

// disturbance is what else goes wrong.
type disturbance string

const (
	nothing    disturbance = "nothing"
	lostAnswer disturbance = "lost-answer" // a write is done, and its answer lost
	// the watch shows an event only after one more has come, or after some time
	delayedOne  disturbance = "delayed-by-1"
	delayedMore disturbance = "delayed-by-3"
	foreign     disturbance = "foreign-write" // somebody changes the object just before the write arrives
	conflict    disturbance = "409"
	failure     disturbance = "500"
)

var disturbances = []disturbance{nothing, lostAnswer, delayedOne, delayedMore, foreign, conflict, failure}

// trouble is a disturbance at one write; those of the watch are everywhere.
type trouble struct {
	disturbance
	write int  // the number of the write; 0 is none
	after bool // the first one of the next life instead
}

func (d disturbance) ofWrites() bool {
	return d == lostAnswer || d == foreign || d == conflict || d == failure
}

// events is how many later events a watch waits for.
func (d disturbance) events() int { return map[disturbance]int{delayedOne: 1, delayedMore: 3}[d] }

// course is one way in which a scenario can go.
type course struct {
	cut point
	trouble
}

func (c course) String() string {
	place := ""
	switch {
	case c.after:
		place = "-at-the-next-life"
	case c.write > 0:
		place = fmt.Sprintf("-at-write-%d", c.write)
	}
	return fmt.Sprintf("cut-%s,%s%s", c.cut, c.disturbance, place)
}

// courses are all combinations for the points of a peaceful run.
func courses(peaceful []point) []course {
	all := []course{}
	last := 0 // the write before the point
	for _, p := range peaceful {
		for _, d := range disturbances {
			if !d.ofWrites() {
				all = append(all, course{cut: p, trouble: trouble{disturbance: d}})
				continue
			}
			all = append(all, course{cut: p, trouble: trouble{disturbance: d, after: true}})
			if last > 0 {
				all = append(all, course{cut: p, trouble: trouble{disturbance: d, write: last}})
			}
		}
		if p.moment == afterWrite {
			last = p.number
		}
	}
	return all
}
