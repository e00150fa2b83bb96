package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestVerdicts shows what counts as two operators that act at once, by histories of two calls: "a" of an operator A,
// and "b" of B. Both are for one second each, unless something else is said.
func TestVerdicts(t *testing.T) {
	say := func(seconds float64, by, kind, text string) event {
		r := report{Kind: kind, By: by, Call: map[string]string{"A": "a", "B": "b"}[by], Text: text, Object: "o"}
		if kind == "stall" || kind == "killed" || kind == stepKill {
			r.Call = ""
		}
		if kind == "stall" {
			r.Lasted, r.Text = must(time.ParseDuration(text)), ""
		}
		return event{r, time.Duration(seconds * float64(time.Second))}
	}
	for name, c := range map[string]struct {
		reason string
		events []event
		want   []string
	}{
		"one after the other": {"it is as it should be", []event{
			say(1, "A", "begin", ""), say(2, "A", "end", outcomeDone), say(3, "B", "begin", ""),
			say(4, "B", "end", outcomeDone),
		}, nil},
		"both": {"nothing excuses it, whether they write or not", []event{
			say(1, "A", "begin", ""), say(2, "B", "begin", ""), say(3, "A", "end", outcomeDone),
			say(4, "B", "end", outcomeDone),
		}, []string{verdictConcurrent}},
		"killed": {"a process that is dead does nothing", []event{
			say(1, "A", "begin", ""), say(2, "A", stepKill, ""), say(2.1, "A", "killed", ""), say(3, "B", "begin", ""),
			say(4, "B", "end", outcomeDone),
		}, nil},
		"killed too late": {"it ran when the other one began", []event{
			say(1, "A", "begin", ""), say(2, "B", "begin", ""), say(3, "A", "writing", "a1"),
			say(4, "A", "killed", ""), say(5, "B", "end", outcomeDone),
		}, []string{verdictConcurrent}},
		"frozen": {"it wakes up within its handler, but writes nothing", []event{
			say(1, "A", "begin", ""),
			say(9, "B", "begin", ""), say(9.1, "B", "writing", "b1"), say(9.2, "B", "wrote", "b1"),
			say(10, "B", "end", outcomeDone), say(20, "A", "stall", "18s"), say(20.1, "A", "writing", "a0"),
			say(20.2, "A", "refused", ""), say(21, "A", "end", ""),
		}, []string{verdictHarmless}},
		"frozen and writing": {"a write after the process continues is accepted", []event{
			say(1, "A", "begin", ""),
			say(9, "B", "begin", ""), say(9.1, "B", "writing", "b1"), say(9.2, "B", "wrote", "b1"),
			say(10, "B", "end", outcomeDone), say(20, "A", "stall", "18s"), say(20.1, "A", "writing", "a1"),
			say(20.2, "A", "wrote", "a1"), say(21, "A", "end", outcomeDone),
		}, []string{verdictBothWrote}},
		"frozen at another time": {"that is no excuse", []event{
			say(1, "A", "stall", "5s"), say(2, "A", "begin", ""), say(3, "B", "begin", ""),
			say(4, "A", "end", outcomeDone),
			say(5, "B", "end", outcomeDone),
		}, []string{verdictConcurrent}},
		"frozen before its first word": {"it was let begin, but another one was let begin meanwhile", []event{
			say(1, "A", "begin", ""), say(1.5, "B", "stall", "9s"), say(1.6, "B", "begin", ""),
			say(2, "A", "writing", "a1"), say(2.1, "A", "wrote", "a1"), say(2.2, "B", "end", ""),
			say(3, "A", "end", outcomeDone),
		}, []string{verdictHarmless}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newCallHistory(c.events, map[string]bool{"a1": true, "b1": true})
			var got []string
			for _, o := range a.overlaps(func(*call, *call) bool { return true }) {
				got = append(got, o.verdict)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestSilences shows which periods count as silences.
func TestSilences(t *testing.T) {
	at := func(seconds int, by, kind string, lasted time.Duration) event {
		return event{report{Kind: kind, By: by, Lasted: lasted}, time.Duration(seconds) * time.Second}
	}
	for name, c := range map[string]struct {
		reason string
		events []event
		want   int
	}{
		"acting":  {"it is less than the limit", []event{at(0, "A", "begin", 0), at(9, "A", "begin", 0)}, 0},
		"silence": {"it is more", []event{at(0, "A", "begin", 0), at(11, "A", "begin", 0)}, 1},
		"a disturbance": {"it counts from then", []event{
			at(0, "A", "begin", 0), at(8, "A", stepKill, 0), at(17, "B", "begin", 0),
		}, 0},
		"a slow machine": {"it is not counted", []event{
			at(0, "A", "begin", 0), at(5, testIdentity, "stall", 3*time.Second), at(12, "A", "begin", 0),
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := newCallHistory(slices.Clone(c.events), nil).silences(10 * time.Second)
			if len(got) != c.want {
				t.Errorf("%s: want %d, got %v", c.reason, c.want, got)
			}
		})
	}
}

func must(d time.Duration, err error) time.Duration {
	if err != nil {
		panic(err)
	}
	return d
}
