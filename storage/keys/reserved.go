package keys

import (
	"slices"
	"strings"
)

// IsReserved reports whether the framework itself uses the name after the prefix, on some object: a reserved name with
// or without a kind at its end, or the name of a record of children. The name of a handler's record is not reserved.
func IsReserved(name string) bool {
	return strings.HasPrefix(name, ChildrenOf) || strings.HasPrefix(name, ChildrenOfRun) ||
		slices.ContainsFunc(reservedNames, func(own string) bool { return isReserved(name, own) })
}
