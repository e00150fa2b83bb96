package kopf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// addresses are those of the servers of a program, as its flags or RunSettings have them. Empty and "0" are off.
type addresses struct{ metrics, health string }

// startLine returns the keys and values that the operator logs when it starts.
func (op *Operator) startLine(plan []reconcilers.Registration) []any {
	kinds, ids := map[string]bool{}, map[string]bool{}
	for _, r := range plan {
		if registry.Watches(r.Handler) || registry.Reports(r.Handler) || r.Handler.Sparing {
			continue // not a handler of the user
		}
		kind := r.Selector.String()
		kinds[kind], ids[kind+" "+r.Handler.ID] = true, true
	}
	namespaces := op.settings.scope.Patterns().Texts()
	if len(namespaces) == 0 {
		namespaces = []string{"*"}
	}
	line := []any{
		"kinds", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), "handlers", len(ids), "namespaces", namespaces,
		"coordination", op.coordination(),
	}
	for _, server := range []struct{ key, address, path string }{
		{"metrics", op.listening.metrics, "/metrics"},
		{"health", op.listening.health, ""},
		{"debug", op.inspection.Address, ""},
	} {
		isOff := server.address == "" || server.address == "0" ||
			server.key == "debug" && op.inspection.Optional // its address may be in use: a line follows
		if !isOff {
			line = append(line, server.key, server.address+server.path)
		}
	}
	return line
}

// coordination says how the operator finds out whether another process handles the same objects.
func (op *Operator) coordination() string {
	own := op.settings.values.Peering
	switch {
	case op.hasPeers() && !own.Mandatory && op.lock == nil:
		return fmt.Sprintf("peering %q with priority %d, if it exists", own.Name, own.Priority)
	case op.hasPeers():
		return fmt.Sprintf("peering %q with priority %d", own.Name, own.Priority)
	case op.program:
		return "none: run one replica"
	default:
		return "leader election of the manager, if enabled"
	}
}
