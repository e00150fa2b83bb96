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
	// Verb is "create", "update" or "delete" for the object, "apply" or "remove" for others; "refuse" expects an error:
	// to apply the objects of a file, to update the object, or, with neither, to delete it. "status" writes the status
	// of another object, in the place of its controller. "second" starts a second operator, and "stop second" ends it.
	Verb string
	// Patch is the merge patch of an update or a status.
	Patch string
	// File has the objects to be applied or removed; it is in the folder of the example.
	File string
	// Args are further arguments of the second operator, after those of the first one. For "status", they are the
	// object, such as "statefulset/orders".
	Args []string
	// Waits are what kubectl is to wait for then, one after the other, as by its option --for.
	Waits []string
	// Lines are regular expressions for the operator's output after the act, in any order. Lines with the prefix
	// "Warning: " and all lines of a refused act are for the output of kubectl. Lines with the prefix "second: " are
	// for the second operator.
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
// <file>.yaml", "remove <file>.yaml", or "refuse" with a patch, a file or "delete", then "wait <for>" for a wait of
// kubectl, and the expressions of the lines that follow. "status <kind>/<name> <patch>" writes a status in the place of
// a controller, which the cluster of a demonstration does not have. "second <options>" starts a second operator with
// these further options, until "stop second". Lines under "restart" and "stop" are left out: a demonstration starts
// the first operator once and ends it without looking. An example without the file has no acts of its own.
func Script(example string) (acts []Act, err error) {
	file := filepath.Join(example, "expected.txt")
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the script of the example: %w", err)
	}
	left := false
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch verb, patch, _ := strings.Cut(line, " "); {
		case line == "":
		case verb == "restart", line == "stop":
			left = true
		case line == "stop second", verb == "second" && strings.HasPrefix(patch, "-"), isStatus(verb, patch):
			left = false
			acts = append(acts, otherAct(verb, patch))
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

// otherAct is an act on the status of another object or on the second operator.
func otherAct(verb, rest string) Act {
	switch verb {
	case "status":
		object, patch, _ := strings.Cut(rest, " ")
		return Act{Verb: verb, Args: []string{object}, Patch: patch}
	case "second":
		return Act{Verb: verb, Args: strings.Fields(rest)}
	default:
		return Act{Verb: verb + " " + rest}
	}
}

// isStatus reports whether a line writes the status of an object.
func isStatus(verb, rest string) bool {
	object, patch, _ := strings.Cut(rest, " ")
	return verb == "status" && strings.Contains(object, "/") && strings.HasPrefix(patch, "{")
}

// around reports whether a line is about objects other than that of the example.
func around(verb, file string) bool {
	known := verb == "apply" || verb == "remove" || verb == "refuse"
	return known && strings.HasSuffix(file, ".yaml") && !strings.Contains(file, " ")
}

// tried returns the act that must be refused.
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
	case "status":
		return append(append([]string{"patch"}, act.Args...),
			"--subresource=status", "--type", "merge", "-p", act.Patch)
	case "apply":
		return []string{"apply", "-f", filepath.Join(s.Example, act.File)}
	case "refuse":
		return append(s.arguments(act.tried()), "--dry-run=server")
	case "remove": // a removal can take long, such as that of a namespace
		return []string{"delete", "-f", filepath.Join(s.Example, act.File), "--wait=false"}
	default:
		return []string{"apply", "-f", s.object()}
	}
}

// waiting returns the arguments of kubectl for a wait.
func (s *Session) waiting(what string) []string {
	return []string{"wait", "-f", s.object(), "--for=" + what, "--timeout", s.patience().String()}
}
