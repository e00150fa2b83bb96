package explorer

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

const podLabel = "Pod default/one"

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// attempted returns an attempt of the handler "make" with its outcome, between two times in seconds.
func attempted(reason, outcome string, retry, from, to int) *attempt {
	return &attempt{
		change: change{object: podLabel, handler: "make", reason: reason, diff: reason}, essence: reason, retry: retry,
		start: seconds(from), end: seconds(to), done: outcome != "", outcome: outcome,
	}
}

func TestJudging(t *testing.T) {
	creation := []*attempt{attempted("create", "success", 0, 1, 2)}
	another := attempted("create", "success", 0, 1, 2)
	another.handler = "paint"
	failing := attempted("create", "failure", 0, 1, 2)
	failing.err = errors.New("no")
	background := attempted("", "success", 0, 1, 2)
	background.family = handlers.Background
	updated := attempted("update", "success", 0, 1, 2)
	at := func(second int) []time.Duration { return []time.Duration{seconds(second)} }
	cases := map[string]struct {
		reason   string
		uncut    []*attempt
		run      run
		want     []Class
		wantText string
	}{
		"Same": {reason: "equal runs have no violation", uncut: creation, run: run{attempts: creation}},
		"Never": {
			reason: "a handler that is never called is lost", uncut: creation,
			want: []Class{Lost}, wantText: "it has not come to an end; in the uncut run, it ended with success",
		},
		"CutForEver": {
			reason: "an attempt that is cut off and not repeated is lost", uncut: creation,
			run:  run{attempts: []*attempt{attempted("create", "", 0, 1, 0)}, killTimes: at(2)},
			want: []Class{Lost}, wantText: "it has not come to an end; in the uncut run, it ended with success",
		},
		"GivenUp": {
			reason: "a failure instead of a success is a loss", uncut: creation,
			run:  run{attempts: []*attempt{failing}},
			want: []Class{Lost}, wantText: "it ended with failure at last, in the uncut run with success: no",
		},
		"Merged": {
			reason: "an edit that is merged into the creation is not a loss",
			uncut:  []*attempt{creation[0], updated},
			run:    run{attempts: []*attempt{merged("create", "update")}},
		},
		"OtherHandler": {
			reason: "a change that reaches only one of two handlers is lost",
			uncut:  creation, run: run{attempts: []*attempt{another}},
			want: []Class{Lost}, wantText: "it has not come to an end; in the uncut run, it ended with success",
		},
		"DeletedUnheld": {
			reason: "a deletion without a finalizer may be missed",
			uncut:  []*attempt{attempted("delete", "success", 0, 1, 2)},
		},
		"Deleted": {
			reason: "a deletion with a finalizer must be handled",
			uncut:  []*attempt{attempted("delete", "success", 0, 1, 2)},
			run:    run{objectsWithFinalizers: map[string]bool{podLabel: true}},
			want:   []Class{Lost}, wantText: "it has not come to an end; in the uncut run, it ended with success",
		},
		"CutOff": {
			reason: "an attempt that was cut off may be repeated", uncut: creation,
			run: run{
				attempts:  []*attempt{attempted("create", "", 0, 1, 0), attempted("create", "success", 0, 5, 6)},
				killTimes: at(2),
			},
		},
		"Unwritten": {
			reason: "an attempt that ended shortly before the cut may be repeated", uncut: creation,
			run: run{
				attempts: []*attempt{creation[0], attempted("create", "success", 0, 5, 6)}, killTimes: at(3),
			},
		},
		"Written": {
			reason: "an attempt that ended long before the cut must not be repeated", uncut: creation,
			run: run{
				attempts: []*attempt{creation[0], attempted("create", "success", 0, 9, 10)}, killTimes: at(8),
			},
			want: []Class{Repeated}, wantText: "attempt 1 is made 2 times for one change; what went wrong explains 1",
		},
		"Disturbed": {
			reason: "a refused write explains one repetition", uncut: creation,
			run: run{
				attempts: []*attempt{creation[0], attempted("create", "success", 0, 9, 10)}, disturbanceTimes: at(2),
			},
		},
		"Twice": {
			reason: "one cut explains only one repetition", uncut: creation,
			run: run{
				attempts: []*attempt{
					attempted("create", "", 0, 1, 0), attempted("create", "success", 0, 5, 6),
					attempted("create", "success", 0, 7, 8),
				},
				killTimes: at(2),
			},
			want: []Class{Repeated}, wantText: "attempt 1 is made 3 times for one change; what went wrong explains 2",
		},
		"Retried": {
			reason: "a retry does not count as a repetition",
			uncut:  creation,
			run: run{
				attempts: []*attempt{attempted("create", "retry", 0, 1, 2), attempted("create", "success", 1, 3, 4)},
			},
		},
		"SideBySide": {
			reason: "attempts of one handler that overlap are a violation", uncut: creation,
			run: run{
				attempts: []*attempt{attempted("create", "retry", 0, 1, 4), attempted("create", "success", 1, 3, 5)},
			},
			want: []Class{Concurrent},
			wantText: "make #2 (create) for Pod default/one begins at 3s, " +
				"when make #1 (create) for Pod default/one has not ended",
		},
		"DeadBesideLiving": {
			reason: "an attempt of a killed life is not concurrent with a later one", uncut: creation,
			run: run{
				attempts:  []*attempt{attempted("create", "", 0, 1, 0), attempted("create", "success", 0, 3, 4)},
				killTimes: at(2),
			},
		},
		"Background": {
			reason: "the number of background attempts may differ",
			uncut:  []*attempt{background}, run: run{attempts: []*attempt{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			there := state{objects: map[string]any{podLabel: map[string]any{}},
				existingObjects: map[string]bool{podLabel: true}}
			uncut := &run{attempts: tc.uncut, finalState: there, complete: true}
			here := tc.run
			here.finalState, here.complete = there, true
			here.judgeAll(uncut, settings{})
			var classes []Class
			var text string
			for _, v := range here.violations {
				classes, text = append(classes, v.Class), v.Text
			}
			if diff := cmp.Diff(tc.want, classes); diff != "" || text != tc.wantText {
				t.Errorf("%s (-want, +got):\n%s\n%s", tc.reason, diff, text)
			}
		})
	}
}

// merged returns an attempt for one reason that sees the state of another one.
func merged(reason, state string) *attempt {
	a := attempted(reason, "success", 0, 1, 2)
	a.essence = state
	return a
}
