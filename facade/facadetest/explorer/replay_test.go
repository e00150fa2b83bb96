package explorer_test

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// setFlag sets a flag until the test ends.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(name, before) })
}

// courses returns the courses of the violations.
func courses(report *explorer.Report) (all []string) {
	for _, v := range report.Violations {
		all = append(all, v.Course)
	}
	return all
}

func TestReplay(t *testing.T) {
	const name = "cut-after-effect-1-of-add-volume,events-late-by-1"
	setFlag(t, "explorer.course", name)
	report := explorer.Search(t, scenario(true, func(d *databases) { d.addsVolume, d.onlyHandler = true, "provision" }))
	if report.Played != 1 || len(report.Violations) == 0 || report.Violations[0].Course != name {
		t.Errorf("only the named course must be played, besides two uncut ones:\n%s", report)
	}
}

func TestAtRandom(t *testing.T) {
	setFlag(t, "explorer.time", "1ns")
	setFlag(t, "explorer.seed", "5")
	wrong := scenario(true, func(d *databases) { d.generatesName, d.onlyHandler = true, "settings" })
	first, second := explorer.Search(t, wrong), explorer.Search(t, wrong)
	if first.Seed != 5 || first.Played < 1 {
		t.Errorf("want at least one course with the seed 5, got %d with the seed %d", first.Played, first.Seed)
	}
	if diff := cmp.Diff(courses(first), courses(second)); diff != "" {
		t.Errorf("equal seeds must find violations in equal courses:\n%s", diff)
	}
}

func TestAllCourses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	setFlag(t, "explorer.courses", "all")
	report := explorer.Search(t, scenario(true, func(d *databases) { d.addsVolume, d.onlyHandler = true, "provision" }),
		explorer.CutsOnly())
	if report.Played < report.Possible {
		t.Errorf("all courses must be played, got %d of %d", report.Played, report.Possible)
	}
}
