package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Act is one thing that is done to the object of an example.
type Act struct {
	// Verb is "create", "update" or "delete".
	Verb string
	// Patch is the merge patch of an update.
	Patch string
	// Lines are regular expressions for what the operator is to say then, in any order.
	Lines []string
}

// acts are those of the session, or those that do for every example with handlers of these reasons.
func (s *Session) acts() []Act {
	if len(s.Acts) > 0 {
		return s.Acts
	}
	acts := []Act{{Verb: "create"}, {Verb: "update", Patch: s.Change}, {Verb: "delete"}}
	for i := range acts {
		acts[i].Lines = []string{fmt.Sprintf(cmp.Or(s.Fired, Fired), acts[i].Verb)}
	}
	return acts
}

// Script reads the acts of an example from its expected.txt: a line "create", "update <patch>" or "delete", then the
// expressions of what follows. What stands under "restart" is left out: a demonstration has one operator. An example
// without the file has no acts of its own.
func Script(example string) (acts []Act, err error) {
	file := filepath.Join(example, "expected.txt")
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what the example does: %w", err)
	}
	left := false
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch verb, patch, _ := strings.Cut(line, " "); {
		case line == "":
		case verb == "restart":
			left = true
		case line == "create", line == "delete", verb == "update" && strings.HasPrefix(patch, "{"):
			left = false
			acts = append(acts, Act{Verb: verb, Patch: patch})
		case left:
		case len(acts) == 0:
			return nil, fmt.Errorf("reading %s: %q stands under no step", file, line)
		default:
			acts[len(acts)-1].Lines = append(acts[len(acts)-1].Lines, line)
		}
	}
	return acts, nil
}

// arguments are those of kubectl for the act.
func (s *Session) arguments(act Act) []string {
	switch act.Verb {
	case "update":
		return []string{"patch", "-f", s.object(), "--type", "merge", "-p", act.Patch}
	case "delete":
		return []string{"delete", "-f", s.object(), "--wait", "--timeout", s.patience().String()}
	default:
		return []string{"apply", "-f", s.object()}
	}
}
