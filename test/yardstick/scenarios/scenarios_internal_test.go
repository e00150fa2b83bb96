package scenarios

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTurns is about fairness: nobody comes last in every round, and nobody is measured in a scenario that is not his.
func TestTurns(t *testing.T) {
	b := &Bench{Contenders: []Contender{{Name: "dynamic", Dynamic: true}, {Name: "typed"}, {Name: "kopf"}}}
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
