package session_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/cmd/demo/session"
)

func TestScript(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		want         []session.Action
		fails        string
	}{
		"Nothing": {reason: "an empty script has no acts", text: ""},
		"NoStep":  {reason: "a line must be under a step", text: "Seen\n", fails: "under no step"},
		"AllSteps": {
			reason: "restart and stop are not acts of a demonstration",
			text:   "create\nA .*b\nC\nupdate {\"a\":1}\nrestart\nD\n\ndelete\nE\nstop\nF\n",
			want: []session.Action{
				{Verb: "create", Lines: []string{"A .*b", "C"}}, {Verb: "update", Patch: `{"a":1}`},
				{Verb: "delete", Lines: []string{"E"}},
			},
		},
		"Around": {
			reason: "an operator may look at more than its object",
			text:   "apply one.yaml\nrestart\nA\nremove one.yaml\nB\napply it all.yaml\n",
			want: []session.Action{
				{Verb: "apply", File: "one.yaml"},
				{Verb: "remove", File: "one.yaml", Lines: []string{"B", "apply it all.yaml"}},
			},
		},
		"Refused": {
			reason: "a refused act can be an apply, an update or a deletion",
			text:   "refuse bad.yaml\nA\nrestart\nB\nrefuse {\"a\":1}\nstop\nrefuse delete\nC\n",
			want: []session.Action{
				{Verb: "refuse", File: "bad.yaml", Lines: []string{"A"}}, {Verb: "refuse", Patch: `{"a":1}`},
				{Verb: "refuse", Lines: []string{"C"}},
			},
		},
		"Waits": {
			reason: "people wait for conditions before they go on",
			text:   "create\nwait condition=Ready\nA\nrestart\nwait condition=Up\nupdate {}\nwait for it\n",
			want: []session.Action{
				{Verb: "create", WaitConditions: []string{"condition=Ready"}, Lines: []string{"A"}},
				{Verb: "update", Patch: "{}", Lines: []string{"wait for it"}},
			},
		},
		"Status": {
			reason: "the demonstration has no controllers",
			text:   "create\nrestart\nstatus job/a {\"b\": 1}\nA\nstatus of it\n",
			want: []session.Action{
				{Verb: "create"},
				{Verb: "status", Args: []string{"job/a"}, Patch: `{"b": 1}`, Lines: []string{"A", "status of it"}},
			},
		},
		"Second": {
			reason: "peers hand over to each other",
			text:   "create\nsecond --priority=10 -v\nA\nsecond: B\nrestart\nC\nstop second\nD\nstop\nE\n",
			want: []session.Action{
				{Verb: "create"},
				{Verb: "second", Args: []string{"--priority=10", "-v"}, Lines: []string{"A", "second: B"}},
				{Verb: "stop second", Lines: []string{"D"}},
			},
		},
		"Words": {
			reason: "an expression may begin with a verb", text: "create\nupdate of all\ndelete it\nsecond one\n",
			want: []session.Action{{Verb: "create", Lines: []string{"update of all", "delete it", "second one"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "expected.txt"), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := session.Script(folder)
			if tc.fails != "" && (err == nil || !strings.Contains(
				err.Error(), tc.fails,
			)) || tc.fails == "" && err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s: got %+v, error %v", tc.reason, got, err)
			}
		})
	}
	if got, err := session.Script(t.TempDir()); got != nil || err != nil {
		t.Errorf("a missing file is an empty script: got %+v, error %v", got, err)
	}
}
