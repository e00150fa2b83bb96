package scenarios

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
)

// TestTurns is about fairness: nobody comes last in every round, and nobody is measured in a scenario that is not his.
func TestTurns(t *testing.T) {
	b := &Bench{Contenders: []Contender{
		{Name: "dynamic", Dynamic: true}, {Name: "typed"}, {Name: "kopf", Skips: []string{"slow"}},
		{Name: "resting", Plays: "rest"},
	}}
	cases := map[string]struct {
		reason   string
		scenario Scenario
		round    int
		want     []string
	}{
		"first":  {reason: "in their order", want: []string{"dynamic", "typed", "kopf"}},
		"second": {reason: "backwards", round: 1, want: []string{"kopf", "typed", "dynamic"}},
		"third": {
			reason: "as the first: nothing was turned for good", round: 2,
			want: []string{"dynamic", "typed", "kopf"},
		},
		"skipped": {
			reason: "who would take an hour does not take part", scenario: Scenario{Name: "slow"},
			want: []string{"dynamic", "typed"},
		},
		"apart": {
			reason:   "who does nothing is not compared with who has come to work",
			scenario: Scenario{Name: "rest", Apart: true}, want: []string{"resting"},
		},
		"typed only": {
			reason:   "maps instead of a type that exists are nothing that somebody would do",
			scenario: Scenario{TypedOnly: true}, want: []string{"typed", "kopf"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range b.turns(tc.scenario, tc.round) {
				got = append(got, c.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeadOperator is about an operator that ends in the middle of a phase: nobody waits for it until patience is at
// its end, and who reads the error learns which one it was, where, and what it said last.
func TestDeadOperator(t *testing.T) {
	s := Scenario{Name: "changes", phases: []phase{{"create", func(ctx context.Context, t *trial) error {
		if err := t.start(); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}}}}
	b := &Bench{
		Cluster: &cluster.Cluster{}, Folder: t.TempDir(), Progress: io.Discard, Rounds: 1,
		Contenders: []Contender{{Name: "ours", Args: []string{"sh", "-c", "echo no rights; exit 3"}}},
	}
	err := s.Play(t.Context(), b)
	for _, want := range []string{"changes, ours, create", "exit status 3", "no rights"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not tell %q: %v", want, err)
		}
	}
}
