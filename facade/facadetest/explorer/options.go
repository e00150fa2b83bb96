package explorer

import (
	"math"
	"strings"
	"time"
)

const (
	// usual is how many courses are played unless something else is said.
	usual = 100
	// everything is all of them.
	everything = math.MaxInt
	// calm is how long nothing must happen for a scenario to be idle: longer than the usual delays of retries, and
	// than the longest delay of handlers that call themselves by their own changes.
	calm = 11 * time.Minute
)

// Option is one of [Explore] and [Search].
type Option func(*settings)

type settings struct {
	courses  int
	cutsOnly bool
	keep     bool
	stays    bool
	resumes  bool // the operator is started anew at the end of each course
	calm     time.Duration
	ignored  [][]string
	given    course // to be played alone
	alone    bool
	budget   time.Duration
	seed     uint64
}

// Courses is how many courses are played at most: the cuts first, then a sample of the disturbances, and of both
// together. Default: 100.
func Courses(n int) Option { return func(s *settings) { s.courses = max(n, 1) } }

// All plays all courses that one cut and one disturbance can make: hundreds for each handler.
func All() Option { return Courses(everything) }

// CutsOnly leaves out the disturbances of the API: answers that are lost, 409, 500, writes of others, late events.
func CutsOnly() Option { return func(s *settings) { s.cutsOnly = true } }

// KeepObjects leaves out the end, where all is deleted that people have created, and what is left over is a leak.
func KeepObjects() Option { return func(s *settings) { s.keep = true } }

// OutsideStays says that what is outside needs not become what it was at the beginning when all objects are deleted:
// letters that were sent stay sent.
func OutsideStays() Option { return func(s *settings) { s.stays = true } }

// Calm is how long nothing must happen for a scenario to be at rest: no handler is called or runs, but for daemons and
// timers, and nothing is written. It must be longer than the delays between retries. Default: 10 minutes.
func Calm(d time.Duration) Option { return func(s *settings) { s.calm = d } }

// Ignoring leaves fields out of the comparison of objects, such as "status.ticks": those that depend on how often
// something was called.
func Ignoring(paths ...string) Option {
	return func(s *settings) {
		for _, path := range paths {
			s.ignored = append(s.ignored, strings.Split(path, "."))
		}
	}
}

// For plays courses at random for so long, in real time, instead of a number of them.
func For(budget time.Duration) Option { return func(s *settings) { s.budget = budget } }

// Seed chooses which courses are played at random, and which are the sample. Default: 1.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }
