package commandline_test

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
)

// A terminal gets colours, unless somebody wants none, or the format is for machines.
func TestColoursOnATerminal(t *testing.T) {
	cases := map[string]struct {
		reason  string
		noColor string
		args    []string
		want    bool
	}{
		"people":   {"warnings are yellow", "", nil, true},
		"NO_COLOR": {"somebody has said so", "1", nil, false},
		"machines": {"it is no JSON with colours in it", "", []string{"--log-format=json"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", c.noColor)
			// What is written to this side of a pseudo-terminal comes back, as if somebody had typed it.
			terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
			if err != nil {
				t.Skipf("this system has no pseudo-terminals here: %v", err)
			}
			defer func() { _ = terminal.Close() }()
			cmd := commandline.New(commandline.Program{Name: "test.example.org", Operator: &fakeOperator{}})
			cmd.SetErr(terminal)
			cmd.SetArgs(append(c.args, "--kubeconfig", nowhere))
			if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, errSetUp) {
				t.Fatal(err)
			}
			_ = terminal.SetReadDeadline(time.Now().Add(10 * time.Second))
			line, err := bufio.NewReader(terminal).ReadString('\n')
			if err != nil || !strings.Contains(line, "Neither -n nor -A") {
				t.Fatalf("%v: %q", err, line)
			}
			if got := strings.Contains(line, "^[[33m"); got != c.want {
				t.Errorf("%s: %q", c.reason, line)
			}
		})
	}
}
