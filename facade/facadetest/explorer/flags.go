package explorer

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

// The default of each flag is its environment variable.
var (
	flagCourse  = flag.String("explorer.course", os.Getenv("EXPLORER_COURSE"), "play this `course` alone")
	flagCourses = flag.String("explorer.courses", os.Getenv("EXPLORER_COURSES"), "play `so many` courses, or all")
	flagTime    = flag.String("explorer.time", os.Getenv("EXPLORER_TIME"), "play courses at random for `so long`")
	flagSeed    = flag.String("explorer.seed", os.Getenv("EXPLORER_SEED"), "the random `seed`")
)

// collectSettings applies the options, then the flags, which have precedence.
func collectSettings(options []Option) (settings, error) {
	s := settings{courses: defaultCourses, calm: defaultCalm, seed: 1}
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
