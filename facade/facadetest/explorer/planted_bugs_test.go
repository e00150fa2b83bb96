package explorer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// foundViolation is a violation without its history.
type foundViolation struct {
	class                 explorer.Class
	subject, text, course string
}

// TestPlantedBugs shows that a search finds planted bugs. All but the last one appear only in a disturbed run.
func TestPlantedBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	cases := map[string]struct {
		reason  string
		plant   func(*databases)
		want    foundViolation
		history []string // in this order
	}{
		"RepeatedAfterACrash": {
			reason: "a repeated handler creates a second volume, as the id of the first was not stored",
			plant:  func(d *databases) { d.addsVolume, d.onlyHandler = true, "provision" },
			want: foundViolation{
				explorer.Different, "Database default/orders", `status.volume: "vol-2" here, "vol-1" in the uncut run`,
				"cut-after-effect-1-of-add-volume",
			},
			history: []string{
				"people     create databases/orders: 201", "life 1     outside: add volume",
				"life 1     KILLED after-effect-1-of-add-volume", "life 2     is started",
				"life 2     outside: add volume",
			},
		},
		"ChildNotIdempotent": {
			reason: "a repeated handler creates a second child with a generated name",
			plant:  func(d *databases) { d.generatesName, d.onlyHandler = true, "settings" },
			want: foundViolation{
				explorer.Different, "ConfigMap default/orders-<2>", "it is there; in the uncut run, it is not",
				"cut-after-write-1-of-configmaps/orders-",
			},
			history: []string{
				"life 1     KILLED after-write-1-of-configmaps/orders-", "life 2     create configmaps/orders-: 201",
			},
		},
		"LostUpdate": {
			reason: "an update without a version overwrites the write of another client",
			plant:  func(d *databases) { d.ignoresVersion, d.onlyHandler = true, "list" },
			want: foundViolation{
				explorer.Overwritten, "ConfigMap default/inventory",
				"a concurrent write of another client is lost: the write was of the whole object, and did " +
					"not ask for the version that was read",
				"foreign-at-write-1-of-configmaps/inventory",
			},
			history: []string{
				"life 1     get configmaps/inventory: 200", "other      changes ConfigMap default/inventory",
				"life 1     update configmaps/inventory: 200",
			},
		},
		"NoDeleteHandler": {
			reason: "a volume outside of the cluster outlives its object",
			plant:  func(d *databases) { d.skipsRelease = true },
			want: foundViolation{
				explorer.Leaked, "outside", "it is not as at the beginning when all is deleted that people have " +
					"created:\nsmall: 1 here, nothing at the beginning",
				"uncut",
			},
			history: []string{"outside: ensure volume", "people     delete databases/orders: 200"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := explorer.Search(t, scenario(true, tc.plant))
			t.Logf("%d courses", report.Played)
			if len(report.Violations) == 0 {
				t.Fatalf("want a violation: %s", tc.reason)
			}
			v := report.Violations[0]
			got := foundViolation{v.Class, v.Subject, v.Text, v.Course}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(foundViolation{})); diff != "" {
				t.Errorf("%s (-want, +got):\n%s\n%s", tc.reason, diff, report)
			}
			rest := strings.Join(v.History, "\n")
			for _, line := range tc.history {
				_, after, ok := strings.Cut(rest, line)
				if !ok {
					t.Errorf("%s: the history lacks %q:\n%s", tc.reason, line, report)
				}
				rest = after
			}
		})
	}
}

func TestCorrectOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	explorer.Explore(t, scenario(false, func(*databases) {}), explorer.Courses(15))
}
