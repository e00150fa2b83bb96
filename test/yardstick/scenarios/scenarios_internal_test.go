package scenarios

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
)

// TestTurns shows that the order alternates between rounds, and that each contender plays only its own scenarios.
func TestTurns(t *testing.T) {
	b := &Bench{Contenders: []Contender{
		{Name: "dynamic", IsDynamic: true}, {Name: "typed"}, {Name: "kopf", SkippedScenarios: []string{"slow"}},
		{Name: "resting", OnlyScenario: "rest"},
	}}
	cases := map[string]struct {
		reason   string
		scenario Scenario
		round    int
		want     []string
	}{
		"first":  {reason: "the first round keeps the order", want: []string{"dynamic", "typed", "kopf"}},
		"second": {reason: "the second round is reversed", round: 1, want: []string{"kopf", "typed", "dynamic"}},
		"third": {
			reason: "the third round has the order of the first one", round: 2,
			want: []string{"dynamic", "typed", "kopf"},
		},
		"skipped": {
			reason: "a contender does not play a scenario that it skips", scenario: Scenario{Name: "slow"},
			want: []string{"dynamic", "typed"},
		},
		"apart": {
			reason:   "only the contenders of a separate scenario play it",
			scenario: Scenario{Name: "rest", IsSeparate: true}, want: []string{"resting"},
		},
		"typed only": {
			reason:   "a typed-only scenario excludes dynamic contenders",
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

// TestDeadOperator shows that an operator that ends during a phase ends the wait at once, and that the error contains
// the scenario, contender, phase and last output.
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
			t.Errorf("the error does not contain %q: %v", want, err)
		}
	}
}
