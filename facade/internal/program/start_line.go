package program

import (
	"maps"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// StartLine returns the keys and values that the operator logs when it starts.
func StartLine(
	plan []reconcilers.Registration, namespaces []string, coordination string, given commandline.Given,
) []any {
	kinds, ids := map[string]bool{}, map[string]bool{}
	for _, r := range plan {
		if registry.Watches(r.Handler) || registry.Reports(r.Handler) || r.Handler.Sparing {
			continue // not a handler of the user
		}
		kind := r.Selector.String()
		kinds[kind], ids[kind+" "+r.Handler.ID] = true, true
	}
	if len(namespaces) == 0 {
		namespaces = []string{"*"}
	}
	line := []any{
		"kinds", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), "handlers", len(ids), "namespaces", namespaces,
		"coordination", coordination,
	}
	for _, server := range []struct{ key, address, path string }{
		{"metrics", given.Metrics, "/metrics"},
		{"health", given.Health, ""},
		{"debug", given.Inspection.Address, ""},
	} {
		isOff := server.address == "" || server.address == "0" ||
			server.key == "debug" && given.Inspection.Optional // its address may be in use: a line follows
		if !isOff {
			line = append(line, server.key, server.address+server.path)
		}
	}
	return line
}
