package handlers_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// kopfexamples is the resource that vectors serve unless they say otherwise.
func kopfexamples() vectors.Fields {
	return vectors.Fields{
		"group": "kopf.dev", "version": "v1", "plural": "kopfexamples", "kind": "KopfExample", "singular": "kopfexample",
		"shortcuts": []any{"kex"}, "categories": []any{"all"}, "subresources": []any{}, "namespaced": true, "preferred": true,
		"verbs": []any{"list", "watch", "patch"},
	}
}

var (
	versioned   = regexp.MustCompile(`^[^.]*\.v\d+((alpha|beta)\d+)?(\..*)?$`)
	bareVersion = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)
)

// selects tells whether a selector, of positional or of named arguments, means the resource.
func selects(spec any, resource vectors.Fields) (bool, error) {
	wanted := vectors.Fields{}
	args, positional := spec.([]any)
	if named, ok := spec.(map[string]any); ok {
		for key, value := range named {
			if key != "args" {
				wanted[key] = value
			}
		}
		args, _ = named["args"].([]any)
	} else if !positional {
		return false, fmt.Errorf("no selector: %v", spec)
	}
	if err := parsePositional(args, wanted); err != nil {
		return false, err
	}
	return matches(wanted, resource)
}

// parsePositional adds what the positional arguments say: group, version, and the name, of any kind of names.
func parsePositional(args []any, wanted vectors.Fields) error {
	if len(args) == 0 {
		return nil
	}
	name := args[len(args)-1]
	text, _ := name.(string)
	switch {
	case len(args) > 3:
		return errors.New("too many arguments")
	case len(args) == 3:
		wanted["group"], wanted["version"] = args[0], args[1]
	case len(args) == 2:
		group, _ := args[0].(string)
		if at := strings.LastIndex(group, "/"); at >= 0 {
			wanted["group"], wanted["version"] = group[:at], group[at+1:]
		} else if bareVersion.MatchString(group) {
			wanted["group"], wanted["version"] = "", group
		} else {
			wanted["group"] = args[0]
		}
	case versioned.MatchString(text):
		parts := strings.SplitN(text, ".", 3)
		name, wanted["version"] = parts[0], parts[1]
		if len(parts) == 3 {
			wanted["group"] = parts[2]
		}
	case strings.Contains(text, "."):
		name, wanted["group"], _ = strings.Cut(text, ".")
	}
	wanted["any"] = name
	return nil
}

func matches(wanted, resource vectors.Fields) (bool, error) {
	names, all, callable := 0, true, false
	for key, value := range wanted {
		if value == nil {
			continue
		}
		if key != "group" && key != "version" {
			names++
		}
		special, isSpecial := value.(map[string]any)
		callable = callable || special["$"] == "resource"
		if isSpecial {
			ok, err := matchesSpecial(special, resource)
			if err != nil {
				return false, err
			}
			all = all && ok
			continue
		}
		text, isText := value.(string)
		if !isText || (text == "" && key != "group") {
			return false, fmt.Errorf("%s: no name: %v", key, value)
		}
		all = all && matchesText(key, text, resource)
	}
	if names != 1 {
		return false, fmt.Errorf("%d names instead of one", names)
	}
	if wanted["version"] == nil && !callable {
		all = all && resource.Flag("preferred")
	}
	return all, nil
}

func matchesText(key, text string, resource vectors.Fields) bool {
	switch key {
	case "shortcut":
		return slices.Contains(resource.List("shortcuts"), any(text))
	case "category":
		return slices.Contains(resource.List("categories"), any(text))
	case "any":
		return resource["kind"] == text || resource["plural"] == text || resource["singular"] == text ||
			slices.Contains(resource.List("shortcuts"), any(text))
	default:
		return resource[key] == text
	}
}

// matchesSpecial is for markers and callables: neither means the events of Kubernetes.
func matchesSpecial(special, resource vectors.Fields) (bool, error) {
	group := resource["group"]
	isEvents := resource["plural"] == "events" && (group == "" || (group == "events.k8s.io" && resource.Flag("preferred")))
	verdict, ok := map[string]bool{
		"EVERYTHING": special["$"] == "EVERYTHING", "everything": true, "nothing": false,
		"group_is":   group == special["arg"],
		"plural_in":  slices.Contains(special.List("arg"), resource["plural"]),
		"namespaced": resource.Flag("namespaced"),
	}[special.Text("fn", special.Text("$", ""))]
	if !ok {
		return false, fmt.Errorf("no selector: %v", special)
	}
	return verdict && !isEvents, nil
}
