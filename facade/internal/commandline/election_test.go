package commandline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// TestElection shows how the flags of the leader election reach the operator.
func TestElection(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		environment map[string]string
		args        string
		want        serving.ElectionFlags
	}{
		"Nothing": {"the default is auto", nil, "", serving.ElectionFlags{Mode: "auto"}},
		"Flag": {"the flag without a value turns the election on, as in other controllers",
			nil, "run --leader-elect", serving.ElectionFlags{Mode: "true"}},
		"Off": {"false turns it off", nil, "--leader-elect=false", serving.ElectionFlags{Mode: "false"}},
		"ID": {"the name of the Lease can be set", nil, "--leader-elect-id=a.b",
			serving.ElectionFlags{Mode: "auto", ID: "a.b"}},
		"Variables": {"variables set both", map[string]string{
			"KOPF_RUN_LEADER_ELECT": "true", "KOPF_RUN_LEADER_ELECT_ID": "a"}, "run",
			serving.ElectionFlags{Mode: "true", ID: "a"}},
		"Developer": {"the operator of a developer does not wait for a Lease", nil, "--dev",
			serving.ElectionFlags{Mode: "false"}},
		"ElectingDeveloper": {"it does if that is demanded", nil, "--dev --leader-elect=true",
			serving.ElectionFlags{Mode: "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			op := &fakeOperator{}
			if got := runWith(t, op, tc.environment, strings.Fields(tc.args)...); got.code != 0 {
				t.Fatalf("%s: exit code %d: %s", tc.reason, got.code, got.text)
			}
			if d := cmp.Diff(tc.want, op.election); d != "" {
				t.Errorf("%s; -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestWrongElection shows the errors of invalid flags of the leader election.
func TestWrongElection(t *testing.T) {
	for name, tc := range map[string]struct{ reason, args, want string }{
		"Mode": {"another mode is an error", "--leader-elect=maybe", "--leader-elect=maybe: it is auto, true or false"},
		"ID":   {"a name that no object can have is an error", "--leader-elect-id=A_b", `"A_b" cannot be the name`},
		"Standalone": {"a standalone operator has no leader", "--leader-elect --standalone",
			"--leader-elect=true excludes --standalone and --peering"},
		"Peering": {"a mandatory peering decides itself", "--leader-elect -P a",
			"--leader-elect=true excludes --standalone and --peering"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(t, &fakeOperator{}, nil, strings.Fields(tc.args)...)
			if got.code != 2 || !strings.Contains(got.text, tc.want) {
				t.Errorf("%s: exit code %d, want 2, and %q in: %s", tc.reason, got.code, tc.want, got.text)
			}
		})
	}
}
