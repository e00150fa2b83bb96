package declared

import (
	"context"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// kwargs are what filters get by name, beside what all of them do.
var kwargs = map[handlers.Family][]string{
	handlers.Changing: {"reason", "old", "new", "diff"},
	handlers.Watching: {"event", "type"},
	handlers.Admitting: {
		"old", "new", "diff", "dryrun", "operation", "subresource", "userinfo", "warnings", "headers", "sslpeer",
	},
}

// commonArguments lists the arguments that filters of all families get.
var commonArguments = []string{
	"resource", "body", "spec", "meta", "status", "uid", "name", "namespace", "labels", "annotations", "patch",
	"logger", "memo",
}

// whenFilter is the filter by a callback of whole causes.
func whenFilter(family handlers.Family, spec vectors.Fields) (handlers.Filter, error) {
	judge, err := callbackOf(
		spec, "when", func(name string, arg any) (callback, error) { return causeCallback(family, name, arg) },
	)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, c *cause.Cause) (bool, error) { return judge(c), nil }, nil
}

func causeCallback(family handlers.Family, name string, arg any) (callback, error) {
	has := func(name string) bool {
		return slices.Contains(commonArguments, name) || slices.Contains(kwargs[family], name)
	}
	of := func(c any) *cause.Cause { it, _ := c.(*cause.Cause); return it }
	pair, _ := arg.([]any)
	// equals is for arguments of a key and its value, in the mapping at the path.
	equals := func(path ...string) callback {
		return func(c any) bool {
			key, _ := pair[0].(string)
			value, _ := diff.ResolvePath(of(c).Body(), append(path, key))
			return diff.Equal(value, pair[1])
		}
	}
	is := func(path ...string) callback {
		return func(c any) bool { value, _ := diff.ResolvePath(of(c).Body(), path); return diff.Equal(value, arg) }
	}
	judge, ok := map[string]callback{
		"always":       func(any) bool { return true },
		"never":        func(any) bool { return false },
		"name_is":      is("metadata", "name"),
		"namespace_is": is("metadata", "namespace"),
		"spec_eq":      equals("spec"),
		"status_eq":    equals("status"),
		"label_eq":     equals("metadata", "labels"),
		"reason_is":    func(c any) bool { return has("reason") && string(of(c).Reason) == arg },
		"has_diff":     func(c any) bool { return has("diff") && len(of(c).Diff) > 0 },
		"old_is_none":  func(c any) bool { return has("old") && of(c).Old == nil },
		"type_is":      func(c any) bool { return has("type") && typeOf(of(c)) == arg },
		"has_kwarg":    func(any) bool { name, _ := arg.(string); return has(name) },
	}[name]
	if !ok || ((name == "spec_eq" || name == "status_eq" || name == "label_eq") && len(pair) != 2) {
		return nil, fmt.Errorf("no callback of causes: %q of %v", name, arg)
	}
	return judge, nil
}

// typeOf is a null for objects of a listing.
func typeOf(c *cause.Cause) any {
	if c.EventType == "" {
		return nil
	}
	return c.EventType
}
