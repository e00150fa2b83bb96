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

// Action is one thing that is done to the object of an example, or to others around it.
type Action struct {
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
	// WaitConditions are what kubectl is to wait for then, one after the other, as by its option --for.
	WaitConditions []string
	// Lines are regular expressions for the operator's output after the act, in any order. Lines with the prefix
	// "Warning: " and all lines of a refused act are for the output of kubectl. Lines with the prefix "second: " are
	// for the second operator.
	Lines []string
}

// resolveActions are those of the session, or those that do for every example with handlers of these reasons.
func (s *Session) resolveActions() []Action {
	if len(s.Actions) > 0 {
		return s.Actions
	}
	acts := []Action{{Verb: "create"}, {Verb: "update", Patch: s.Change}, {Verb: "delete"}}
	for i := range acts {
		acts[i].Lines = []string{fmt.Sprintf(cmp.Or(s.FiredPattern, DefaultFiredPattern), acts[i].Verb)}
	}
	return acts
}

// Script reads the acts of an example from its expected.txt: a line "create", "update <patch>", "delete", "apply
// <file>.yaml", "remove <file>.yaml", or "refuse" with a patch, a file or "delete", then "wait <for>" for a wait of
// kubectl, and the expressions of the lines that follow. "status <kind>/<name> <patch>" writes a status in the place of
// a controller, which the cluster of a demonstration does not have. "second <options>" starts a second operator with
// these further options, until "stop second". Lines under "restart" and "stop" are left out: a demonstration starts
// the first operator once and ends it without looking. An example without the file has no acts of its own.
func Script(example string) (acts []Action, err error) {
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
			acts = append(acts, parseOtherAction(verb, patch))
		case line == "create", line == "delete", verb == "update" && strings.HasPrefix(patch, "{"):
			left = false
			acts = append(acts, Action{Verb: verb, Patch: patch})
		case isOtherObject(verb, patch):
			left = false
			acts = append(acts, Action{Verb: verb, File: patch})
		case verb == "refuse" && strings.HasPrefix(patch, "{"):
			left = false
			acts = append(acts, Action{Verb: verb, Patch: patch})
		case line == "refuse delete":
			left = false
			acts = append(acts, Action{Verb: verb})
		case left:
		case verb == "wait" && len(acts) > 0 && strings.Contains(patch, "="):
			last := &acts[len(acts)-1]
			last.WaitConditions = append(last.WaitConditions, patch)
		case len(acts) == 0:
			return nil, fmt.Errorf("reading %s: %q stands under no step", file, line)
		default:
			acts[len(acts)-1].Lines = append(acts[len(acts)-1].Lines, line)
		}
	}
	return acts, nil
}

// parseOtherAction is an act on the status of another object or on the second operator.
func parseOtherAction(verb, rest string) Action {
	switch verb {
	case "status":
		object, patch, _ := strings.Cut(rest, " ")
		return Action{Verb: verb, Args: []string{object}, Patch: patch}
	case "second":
		return Action{Verb: verb, Args: strings.Fields(rest)}
	default:
		return Action{Verb: verb + " " + rest}
	}
}

// isStatus reports whether a line writes the status of an object.
func isStatus(verb, rest string) bool {
	object, patch, _ := strings.Cut(rest, " ")
	return verb == "status" && strings.Contains(object, "/") && strings.HasPrefix(patch, "{")
}

// isOtherObject reports whether a line is about objects other than that of the example.
func isOtherObject(verb, file string) bool {
	known := verb == "apply" || verb == "remove" || verb == "refuse"
	return known && strings.HasSuffix(file, ".yaml") && !strings.Contains(file, " ")
}

// refusedAction returns the act that must be refused.
func (a Action) refusedAction() Action {
	switch a.Verb = "delete"; {
	case a.File != "":
		a.Verb = "apply"
	case a.Patch != "":
		a.Verb = "update"
	}
	return a
}

// setupActions are the acts that come before the object is created.
func (s *Session) setupActions() []Action {
	created := slices.IndexFunc(s.Actions, func(a Action) bool { return a.Verb == "create" })
	return s.Actions[:max(created, 0)]
}

// arguments are those of kubectl for the act.
func (s *Session) arguments(act Action) []string {
	switch act.Verb {
	case "update":
		return []string{"patch", "-f", s.object(), "--type", "merge", "-p", act.Patch}
	case "delete":
		return []string{"delete", "-f", s.object(), "--wait", "--timeout", s.handlerTimeout().String()}
	case "status":
		return append(append([]string{"patch"}, act.Args...),
			"--subresource=status", "--type", "merge", "-p", act.Patch)
	case "apply":
		return []string{"apply", "-f", filepath.Join(s.Example, act.File)}
	case "refuse":
		return append(s.arguments(act.refusedAction()), "--dry-run=server")
	case "remove": // a removal can take long, such as that of a namespace
		return []string{"delete", "-f", filepath.Join(s.Example, act.File), "--wait=false"}
	default:
		return []string{"apply", "-f", s.object()}
	}
}

// waiting returns the arguments of kubectl for a wait.
func (s *Session) waiting(what string) []string {
	return []string{"wait", "-f", s.object(), "--for=" + what, "--timeout", s.handlerTimeout().String()}
}
