package explorer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// plain returns a scenario with one database and an operator that does not use its Life.
func plain(register func(op *kopf.Operator, all kopf.Selection[*kopf.Unstructured])) func() explorer.Scenario {
	return func() explorer.Scenario {
		return explorer.Scenario{
			Server: server,
			Operator: func(*explorer.Life) *kopf.Operator {
				op := kopf.New("plain.example.org")
				register(op, kopf.ForResource(op, "databases.example.org"))
				return op
			},
			Play: func(p *explorer.Play) { p.Create(database("orders")) },
		}
	}
}

func TestViolations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	cases := map[string]struct {
		reason   string
		scenario func() explorer.Scenario
		options  []explorer.Option
		want     string // class, subject and text of the first violation; empty without any
	}{
		"Fighting": {
			reason: "an operator that reacts to its own changes is restless, and the search ends",
			scenario: plain(func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				both := []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}
				all.On("count", both, func(_ context.Context, c *change) error {
					return kopf.SetField(c.Object, "spec.n", 0)
				})
				all.On("up", both, func(_ context.Context, c *change) error {
					c.TryPatch(func(o *kopf.Unstructured) error {
						return kopf.SetField(o, "spec.n", kopf.GetFieldOr(o, "spec.n", 0)+1)
					})
					return nil
				})
			}),
			want: "restless  something still happens",
		},
		"NotStarting": {
			reason: "an operator that ends by itself is a violation",
			scenario: plain(func(op *kopf.Operator, _ kopf.Selection[*kopf.Unstructured]) {
				op.OnStartup("open", func(context.Context, *kopf.Activity) error {
					return kopf.Permanent(errors.New("the door is locked"))
				})
			}),
			want: "broken  the operator has ended by itself: ",
		},
		"BrokenPlay": {
			reason: "an error of the play is reported as a violation",
			scenario: func() explorer.Scenario {
				s := plain(func(*kopf.Operator, kopf.Selection[*kopf.Unstructured]) {})()
				s.Play = func(p *explorer.Play) { p.Delete(database("nowhere")) }
				return s
			},
			want: "broken  deleting *unstructured.Unstructured default/nowhere: ",
		},
		"Unrepeatable": {
			reason:   "two uncut runs that differ are a violation",
			scenario: counting(),
			want: "unrepeatable  two runs without any cut differ, so nothing can be compared: " +
				"all of it: 2 here, 1 in the uncut run",
		},
		"GivingUp": {
			reason: "a permanent failure after a conflict is a violation",
			scenario: plain(func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				all.OnCreate("list", func(ctx context.Context, c *change) error {
					add := func(all map[string]string) { all["orders"] = "yes" }
					err := (&databases{}).inventory(ctx, c, add)
					if err != nil {
						return kopf.Permanent(err)
					}
					return nil
				})
			}),
			options: []explorer.Option{explorer.KeepObjects()},
			want: "lost list (create) for Database default/orders it ended with failure at last, " +
				"in the uncut run with success: ",
		},
		"Stuck": {
			reason: "an object that cannot be deleted is a leak",
			scenario: plain(func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				all.OnDelete("never", func(context.Context, *change) error {
					return kopf.Temporary(errors.New("not yet"), time.Hour)
				})
			}),
			want: "leaked Database default/orders it was deleted, and is still there: " +
				`["plain.example.org/finalizer"] hold it`,
		},
		"Kept": {
			reason:   "with KeepObjects, remaining volumes are not a leak",
			scenario: scenario(true, func(d *databases) { d.skipsRelease, d.onlyHandler = true, "provision" }),
			options:  []explorer.Option{explorer.KeepObjects(), explorer.Courses(1)},
		},
		"Stays": {
			reason:   "with OutsideStays, remaining volumes are not a leak",
			scenario: scenario(true, func(d *databases) { d.skipsRelease, d.onlyHandler = true, "provision" }),
			options:  []explorer.Option{explorer.OutsideStays(), explorer.Courses(1)},
		},
		"Resuming": {
			reason: "results of resume handlers after another start are not a difference",
			scenario: plain(func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				all.OnCreate("made", func(context.Context, *change) error { return nil })
				all.OnResume("seen", func(_ context.Context, c *change) error { c.SetResult("yes"); return nil })
			}),
			options: []explorer.Option{explorer.CutsOnly(), explorer.Courses(4)},
		},
		"Ticking": {
			reason: "a timer is not restless, and its field can be ignored",
			scenario: plain(func(_ *kopf.Operator, all kopf.Selection[*kopf.Unstructured]) {
				all.Timer("tick", time.Minute, func(_ context.Context, r *kopf.Task[*kopf.Unstructured]) error {
					r.TryPatch(func(o *kopf.Unstructured) error {
						return kopf.SetField(o, "status.ticks", kopf.GetFieldOr(o, "status.ticks", 0)+1)
					})
					return nil
				})
			}),
			options: []explorer.Option{explorer.Ignoring("status.ticks"), explorer.CutsOnly(), explorer.Courses(3)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := explorer.Search(t, tc.scenario, tc.options...)
			got := ""
			if len(report.Violations) > 0 {
				v := report.Violations[0]
				got = string(v.Class) + " " + v.Subject + " " + v.Text
			}
			if !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("%s: got %q, want %q\n%s", tc.reason, got, tc.want, report)
			}
		})
	}
}

// counting returns a scenario whose outside depends on the number of runs before.
func counting() func() explorer.Scenario {
	played := 0
	return func() explorer.Scenario {
		s := plain(func(*kopf.Operator, kopf.Selection[*kopf.Unstructured]) {})()
		played++
		course := played
		s.Outside = func() any { return course }
		return s
	}
}
