package explorer

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultCourses is the default number of courses.
	defaultCourses = 100
	// allCourses is the number of courses that means all of them.
	allCourses = math.MaxInt
	// idleTime is the time without activity after which a scenario is idle. Activity is a write, or a call of a handler
	// other than a daemon or a timer. The time is longer than the usual delays of retries, and than the longest delay
	// of handlers that trigger themselves by their own changes.
	idleTime = 11 * time.Minute
)

// Option is an option of [Explore] and [Search].
type Option func(*settings)

// settings holds the options of a search after the flags were applied.
type settings struct {
	courses        int
	cutsOnly       bool
	keepObjects    bool
	outsideStays   bool
	needsRestart   bool // the operator is restarted at the end of each course
	ignoredFields  [][]string
	singleCourse   course // the only course to play, if alone is set
	isSingleCourse bool
	budget         time.Duration
	seed           uint64 // selects the random courses and the samples
}

// Courses limits the number of courses: cuts come first, then a sample of the disturbances and of combinations of both.
// Default: 100.
func Courses(n int) Option { return func(s *settings) { s.courses = max(n, 1) } }

// All plays all courses with one cut and one disturbance: hundreds for each handler.
func All() Option { return Courses(allCourses) }

// CutsOnly plays courses without disturbances of the API, which are lost answers, 409, 500, changes by other clients,
// and delayed events.
func CutsOnly() Option { return func(s *settings) { s.cutsOnly = true } }

// KeepObjects skips the end of each course, where all objects of the play are deleted and everything that remains is
// reported as leaked.
func KeepObjects() Option { return func(s *settings) { s.keepObjects = true } }

// OutsideStays permits outside effects to remain after all objects were deleted. For example, an email cannot be
// unsent.
func OutsideStays() Option { return func(s *settings) { s.outsideStays = true } }

// Ignoring excludes fields from the comparison of objects, such as "status.ticks". It is meant for fields that depend
// on the number of calls.
func Ignoring(paths ...string) Option {
	return func(s *settings) {
		for _, path := range paths {
			s.ignoredFields = append(s.ignoredFields, strings.Split(path, "."))
		}
	}
}

// For plays random courses for the given real time, instead of a number of courses.
func For(budget time.Duration) Option { return func(s *settings) { s.budget = budget } }

// The default of each flag is its environment variable.
var (
	flagCourse  = flag.String("explorer.course", os.Getenv("EXPLORER_COURSE"), "play this `course` alone")
	flagCourses = flag.String("explorer.courses", os.Getenv("EXPLORER_COURSES"), "play `so many` courses, or all")
	flagTime    = flag.String("explorer.time", os.Getenv("EXPLORER_TIME"), "play courses at random for `so long`")
	flagSeed    = flag.String("explorer.seed", os.Getenv("EXPLORER_SEED"), "the random `seed`")
)

// collectSettings applies the options, then the flags, which have precedence.
func collectSettings(options []Option) (settings, error) {
	s := settings{courses: defaultCourses, seed: 1}
	for _, option := range options {
		option(&s)
	}
	// A given course replaces all others.
	if *flagCourse != "" {
		given, err := parseCourse(*flagCourse)
		if err != nil {
			return s, fmt.Errorf("-explorer.course: %w", err)
		}
		s.singleCourse, s.isSingleCourse = given, true
	}
	switch n, err := strconv.Atoi(*flagCourses); {
	case *flagCourses == "":
	case *flagCourses == "all":
		s.courses = allCourses
	case err != nil || n < 1:
		return s, fmt.Errorf("-explorer.courses: %q is neither a number nor all", *flagCourses)
	default:
		s.courses = n
	}
	if *flagTime != "" {
		budget, err := time.ParseDuration(*flagTime)
		if err != nil {
			return s, fmt.Errorf("-explorer.time: %w", err)
		}
		// Each run with a time budget explores other courses; the report names the seed.
		s.budget, s.seed = budget, uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	}
	if *flagSeed != "" {
		seed, err := strconv.ParseUint(*flagSeed, 10, 64)
		if err != nil {
			return s, fmt.Errorf("-explorer.seed: %w", err)
		}
		s.seed = seed
	}
	return s, nil
}
