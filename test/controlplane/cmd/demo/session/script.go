package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Act is one thing that is done to the object of an example, or to others around it.
type Act struct {
	// Verb is "create", "update" or "delete" for the object, "apply" or "remove" for others; "refuse" is what must be
	// refused: to apply the objects of a file, to update the object, or, with neither, to delete it. "second" starts
	// a second operator, and "stop second" ends it.
	Verb string
	// Patch is the merge patch of an update.
	Patch string
	// File has the objects to be applied or removed; it is in the folder of the example.
	File string
	// Args are further arguments of the second operator, after those of the first one.
	Args []string
	// Waits are what kubectl is to wait for then, one after the other, as by its option --for.
	Waits []string
	// Lines are regular expressions for what the operator is to say then, in any order; those that begin with
	// "Warning: " are for what kubectl is to say, as are all of what is refused. The expression of a line that begins
	// with "second: " is for the second operator.
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

// Script reads the acts of an example from its expected.txt: a line "create", "update <patch>", "delete", "apply
// <file>.yaml", "remove <file>.yaml", or "refuse" with a patch, a file or "delete", then "wait <for>" for what kubectl
// is to wait for, and the expressions of what follows. "second <options>" starts a second operator with these further
// options, until "stop second". What stands under "restart" and "stop" is left out: a demonstration starts the first
// operator once and ends it without looking. An example without the file has no acts of its own.
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
		case verb == "restart", line == "stop":
			left = true
		case line == "stop second", verb == "second" && strings.HasPrefix(patch, "-"):
			left = false
			acts = append(acts, operatorAct(line))
		case line == "create", line == "delete", verb == "update" && strings.HasPrefix(patch, "{"):
			left = false
			acts = append(acts, Act{Verb: verb, Patch: patch})
		case around(verb, patch):
			left = false
			acts = append(acts, Act{Verb: verb, File: patch})
		case verb == "refuse" && strings.HasPrefix(patch, "{"):
			left = false
			acts = append(acts, Act{Verb: verb, Patch: patch})
		case line == "refuse delete":
			left = false
			acts = append(acts, Act{Verb: verb})
		case left:
		case verb == "wait" && len(acts) > 0 && strings.Contains(patch, "="):
			last := &acts[len(acts)-1]
			last.Waits = append(last.Waits, patch)
		case len(acts) == 0:
			return nil, fmt.Errorf("reading %s: %q stands under no step", file, line)
		default:
			acts[len(acts)-1].Lines = append(acts[len(acts)-1].Lines, line)
		}
	}
	return acts, nil
}

// operatorAct is an act of the second operator.
func operatorAct(line string) Act {
	if options, starts := strings.CutPrefix(line, "second "); starts {
		return Act{Verb: "second", Args: strings.Fields(options)}
	}
	return Act{Verb: line}
}

// around tells whether a line is about objects around that of the example.
func around(verb, file string) bool {
	known := verb == "apply" || verb == "remove" || verb == "refuse"
	return known && strings.HasSuffix(file, ".yaml") && !strings.Contains(file, " ")
}

// tried is what is done for it to be refused.
func (a Act) tried() Act {
	switch a.Verb = "delete"; {
	case a.File != "":
		a.Verb = "apply"
	case a.Patch != "":
		a.Verb = "update"
	}
	return a
}

// surroundings are the acts that come before the object is created.
func (s *Session) surroundings() []Act {
	created := slices.IndexFunc(s.Acts, func(a Act) bool { return a.Verb == "create" })
	return s.Acts[:max(created, 0)]
}

// arguments are those of kubectl for the act.
func (s *Session) arguments(act Act) []string {
	switch act.Verb {
	case "update":
		return []string{"patch", "-f", s.object(), "--type", "merge", "-p", act.Patch}
	case "delete":
		return []string{"delete", "-f", s.object(), "--wait", "--timeout", s.patience().String()}
	case "apply":
		return []string{"apply", "-f", filepath.Join(s.Example, act.File)}
	case "refuse":
		return append(s.arguments(act.tried()), "--dry-run=server")
	case "remove": // what is gone at last may take longer than there is time, such as a namespace
		return []string{"delete", "-f", filepath.Join(s.Example, act.File), "--wait=false"}
	default:
		return []string{"apply", "-f", s.object()}
	}
}

// waiting are the arguments of kubectl for what it is to wait for.
func (s *Session) waiting(what string) []string {
	return []string{"wait", "-f", s.object(), "--for=" + what, "--timeout", s.patience().String()}
}
