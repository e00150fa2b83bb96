package explorer

import (
	"fmt"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

const (
	// checkpoint is how long an outcome may wait for its write, with what a write takes: operators that set a longer
	// one repeat more.
	checkpoint = time.Second
	// patience is how much later that is if a write was disturbed.
	patience = 3 * time.Second
)

// judgeAttempts looks for calls that nothing explains, and for those side by side.
func (r *run) judgeAttempts(uncut *run) {
	usual := map[change]map[int]int{}
	if uncut != nil {
		for _, a := range uncut.attempts {
			count(usual, a)
		}
	}
	here := map[change]map[int]int{}
	explained := map[change]map[int]int{}
	for _, a := range r.attempts {
		if a.of != handlers.Changing || a.object == "" {
			continue
		}
		count(here, a)
		if explained[a.change] == nil {
			explained[a.change] = map[int]int{}
		}
		explained[a.change][a.retry] += r.reasons(a)
		allowed := max(1, usual[a.change][a.retry]) + explained[a.change][a.retry]
		if n := here[a.change][a.retry]; n > allowed {
			r.violate(Repeated, a.about(), fmt.Sprintf(
				"attempt %d is made %d times for one change; what went wrong explains %d", a.retry+1, n, allowed))
		}
	}
	r.judgeSides()
}

func count(of map[change]map[int]int, a *attempt) {
	if of[a.change] == nil {
		of[a.change] = map[int]int{}
	}
	of[a.change][a.retry]++
}

// reasons is how many more attempts one explains: that it was cut off, that its outcome was not written, that it waits.
func (r *run) reasons(a *attempt) (n int) {
	if a.err != nil && strings.HasPrefix(a.err.Error(), "waits for ") {
		return 1
	}
	for _, at := range r.kills {
		if r.cutOff(a, at) {
			n++
		}
	}
	for _, at := range r.disturbed {
		if at >= a.began {
			n++
		}
	}
	return n
}

// cutOff tells whether a kill fell between the beginning of an attempt and the write of its outcome.
func (r *run) cutOff(a *attempt, kill time.Duration) bool {
	if kill < a.began {
		return false
	}
	grace := checkpoint
	if len(r.disturbed) > 0 {
		grace += patience
	}
	return !a.done || kill <= a.ended+grace
}

// judgeSides looks for two attempts of one handler and one object at once.
func (r *run) judgeSides() {
	for i, a := range r.attempts {
		for _, b := range r.attempts[i+1:] {
			if a.object == "" || a.object != b.object || a.handler != b.handler || a.of != b.of ||
				a.of != handlers.Changing && a.of != handlers.Spawning {
				continue
			}
			if b.began < r.endOf(a) {
				r.violate(Concurrent, a.handler+" for "+a.object, fmt.Sprintf(
					"%s begins at %s, when %s has not ended", b, b.began, a))
			}
		}
	}
}

// endOf is when an attempt has ended, be it that its process has died.
func (r *run) endOf(a *attempt) time.Duration {
	if a.done {
		return a.ended
	}
	for _, kill := range r.kills {
		if kill >= a.began {
			return kill
		}
	}
	return 1<<63 - 1
}
