package explorer

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

const one = "Pod default/one"

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// attempted is an attempt of the handler "make" with its outcome, from a second to another one.
func attempted(reason, outcome string, retry, from, to int) *attempt {
	return &attempt{
		change: change{object: one, handler: "make", reason: reason, diff: reason}, state: reason, retry: retry,
		began: seconds(from), ended: seconds(to), done: outcome != "", outcome: outcome,
	}
}

func TestJudging(t *testing.T) {
	creation := []*attempt{attempted("create", "success", 0, 1, 2)}
	another := attempted("create", "success", 0, 1, 2)
	another.handler = "paint"
	failing := attempted("create", "failure", 0, 1, 2)
	failing.err = errors.New("no")
	background := attempted("", "success", 0, 1, 2)
	background.of = handlers.Spawning
	updated := attempted("update", "success", 0, 1, 2)
	at := func(second int) []time.Duration { return []time.Duration{seconds(second)} }
	cases := map[string]struct {
		reason  string
		uncut   []*attempt
		here    run
		want    []Class
		aboutIt string
	}{
		"Same": {reason: "nothing is wrong", uncut: creation, here: run{attempts: creation}},
		"Never": {
			reason: "nobody has called it", uncut: creation,
			want: []Class{Lost}, aboutIt: "it has not come to an end; in the uncut run, it ended with success",
		},
		"CutForEver": {
			reason: "it was cut off, and not called again", uncut: creation,
			here: run{attempts: []*attempt{attempted("create", "", 0, 1, 0)}, kills: at(2)},
			want: []Class{Lost}, aboutIt: "it has not come to an end; in the uncut run, it ended with success",
		},
		"GivenUp": {
			reason: "an end with another outcome is none", uncut: creation, here: run{attempts: []*attempt{failing}},
			want: []Class{Lost}, aboutIt: "it ended with failure at last, in the uncut run with success: no",
		},
		"Merged": {
			reason: "an edit while nobody looks comes with the creation: that is how it is to be",
			uncut:  []*attempt{creation[0], updated},
			here:   run{attempts: []*attempt{merged("create", "update")}},
		},
		"OtherHandler": {
			reason: "the change was there for another handler, so it was for this one",
			uncut:  creation, here: run{attempts: []*attempt{another}},
			want: []Class{Lost}, aboutIt: "it has not come to an end; in the uncut run, it ended with success",
		},
		"DeletedUnheld": {
			reason: "nobody can know of a deletion that no finalizer delays",
			uncut:  []*attempt{attempted("delete", "success", 0, 1, 2)},
		},
		"Deleted": {
			reason: "a deletion that a finalizer delays is handled",
			uncut:  []*attempt{attempted("delete", "success", 0, 1, 2)},
			here:   run{held: map[string]bool{one: true}},
			want:   []Class{Lost}, aboutIt: "it has not come to an end; in the uncut run, it ended with success",
		},
		"CutOff": {
			reason: "what was cut off is done again", uncut: creation,
			here: run{
				attempts: []*attempt{attempted("create", "", 0, 1, 0), attempted("create", "success", 0, 5, 6)},
				kills:    at(2),
			},
		},
		"Unwritten": {
			reason: "so is what has not been written", uncut: creation,
			here: run{
				attempts: []*attempt{creation[0], attempted("create", "success", 0, 5, 6)}, kills: at(3),
			},
		},
		"Written": {
			reason: "what was written a while before is not done again", uncut: creation,
			here: run{
				attempts: []*attempt{creation[0], attempted("create", "success", 0, 9, 10)}, kills: at(8),
			},
			want: []Class{Repeated}, aboutIt: "attempt 1 is made 2 times for one change; what went wrong explains 1",
		},
		"Disturbed": {
			reason: "a write that was refused explains one more", uncut: creation,
			here: run{
				attempts: []*attempt{creation[0], attempted("create", "success", 0, 9, 10)}, disturbed: at(2),
			},
		},
		"Twice": {
			reason: "one cut explains one attempt", uncut: creation,
			here: run{
				attempts: []*attempt{
					attempted("create", "", 0, 1, 0), attempted("create", "success", 0, 5, 6),
					attempted("create", "success", 0, 7, 8),
				},
				kills: at(2),
			},
			want: []Class{Repeated}, aboutIt: "attempt 1 is made 3 times for one change; what went wrong explains 2",
		},
		"Retried": {
			reason: "a retry is another attempt",
			uncut:  creation,
			here: run{
				attempts: []*attempt{attempted("create", "retry", 0, 1, 2), attempted("create", "success", 1, 3, 4)},
			},
		},
		"SideBySide": {
			reason: "the second begins before the first has ended", uncut: creation,
			here: run{
				attempts: []*attempt{attempted("create", "retry", 0, 1, 4), attempted("create", "success", 1, 3, 5)},
			},
			want: []Class{Concurrent},
			aboutIt: "make #2 (create) for Pod default/one begins at 3s, " +
				"when make #1 (create) for Pod default/one has not ended",
		},
		"DeadBesideLiving": {
			reason: "a dead one is none", uncut: creation,
			here: run{
				attempts: []*attempt{attempted("create", "", 0, 1, 0), attempted("create", "success", 0, 3, 4)},
				kills:    at(2),
			},
		},
		"Background": {
			reason: "how often something is called in the background depends on the time there is",
			uncut:  []*attempt{background}, here: run{attempts: []*attempt{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			there := state{objects: map[string]any{one: map[string]any{}}, alive: map[string]bool{one: true}}
			uncut := &run{attempts: tc.uncut, finally: there, complete: true}
			here := tc.here
			here.finally, here.complete = there, true
			here.judge(uncut, settings{})
			var classes []Class
			var text string
			for _, v := range here.violations {
				classes, text = append(classes, v.class), v.text
			}
			if diff := cmp.Diff(tc.want, classes); diff != "" || text != tc.aboutIt {
				t.Errorf("%s (-want, +got):\n%s\n%s", tc.reason, diff, text)
			}
		})
	}
}

// merged is an attempt for one reason that has seen the state of another one.
func merged(reason, state string) *attempt {
	a := attempted(reason, "success", 0, 1, 2)
	a.state = state
	return a
}
