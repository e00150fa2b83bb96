package explorer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// found is a violation without its history.
type found struct {
	class                 explorer.Class
	subject, text, course string
}

// A search that finds nothing shows nothing: these operators are wrong, and but for the last one nobody sees it before
// they are cut off.
func TestPlantedBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	cases := map[string]struct {
		reason  string
		plant   func(*databases)
		want    found
		history []string // in this order
	}{
		"RepeatedAfterACrash": {
			reason: "a handler that is called again makes a second volume, as the id of the first was not kept",
			plant:  func(d *databases) { d.adds, d.only = true, "provision" },
			want: found{
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
			reason: "a child with a generated name is there twice",
			plant:  func(d *databases) { d.generates, d.only = true, "settings" },
			want: found{
				explorer.Different, "ConfigMap default/orders-<2>", "it is there; in the uncut run, it is not",
				"cut-after-write-1-of-configmaps/orders-",
			},
			history: []string{
				"life 1     KILLED after-write-1-of-configmaps/orders-", "life 2     create configmaps/orders-: 201",
			},
		},
		"LostUpdate": {
			reason: "what somebody else writes between the read and the write is gone",
			plant:  func(d *databases) { d.blind, d.only = true, "list" },
			want: found{
				explorer.Overwritten, "ConfigMap default/inventory",
				"a concurrent write of another client is lost: the write was of the whole object, and did " +
					"not ask for the version that was read",
				"foreign-at-write-1-of-configmaps/inventory",
			},
			history: []string{
				"life 1     get configmaps/inventory: 200", "somebody   changes ConfigMap default/inventory",
				"life 1     update configmaps/inventory: 200",
			},
		},
		"NoDeleteHandler": {
			reason: "what is outside stays when the object goes",
			plant:  func(d *databases) { d.forgets = true },
			want: found{
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
				t.Fatalf("%s: nothing was found", tc.reason)
			}
			v := report.Violations[0]
			got := found{v.Class, v.Subject, v.Text, v.Course}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(found{})); diff != "" {
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

func TestNoBug(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	explorer.Explore(t, scenario(false, func(*databases) {}), explorer.Courses(15))
}
