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

// TestColoursOnATerminal shows that a terminal gets colours, except with NO_COLOR or a format for machines.
func TestColoursOnATerminal(t *testing.T) {
	cases := map[string]struct {
		reason  string
		noColor string
		args    []string
		want    bool
	}{
		"people":   {"warnings on a terminal are yellow", "", nil, true},
		"NO_COLOR": {"NO_COLOR switches colours off", "1", nil, false},
		"machines": {"JSON does not have colours", "", []string{"--log-format=json"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", c.noColor)
			// Text that is written to this side of a pseudo-terminal comes back as if it had been typed.
			terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
			if err != nil {
				t.Skipf("this system has no pseudo-terminals here: %v", err)
			}
			defer func() { _ = terminal.Close() }()
			cmd := commandline.New(commandline.Program{Process: (&fakeOperator{}).asProcess()})
			cmd.SetErr(terminal)
			cmd.SetArgs(append(c.args, "--kubeconfig", unreachableKubeconfig))
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
