package program

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// StartLine returns the keys and values of the line that the operator logs when it starts.
func StartLine(
	plan []reconcilers.Registration, namespaces []string, coordination string, given serving.RunFlags,
) []any {
	kinds, ids := map[string]bool{}, map[string]bool{}
	for _, r := range plan {
		if registry.OnlyWatchesChildren(r.Handler) || registry.ReportsConditions(r.Handler) ||
			r.Handler.IsOptimization {
			continue // not a handler of the user
		}
		// Registrations with the same kind and id count as one handler.
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
	// Servers that are off are left out.
	for _, server := range []struct{ key, address, path string }{
		{"metrics", given.Metrics.BindAddress, "/metrics"},
		{"health", given.HealthProbeBindAddress, ""},
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

// AddDebugServer adds the server of explanations to the manager, unless it is off.
func AddDebugServer(
	m ctrl.Manager, at serving.Inspection, j *journal.Journal, peers func() []peering.Peer, log logr.Logger,
) error {
	if at.IsOff() {
		return nil
	}
	parts := inspection.ExtraHandlers{Profiling: at.Profiling}
	if at.Console {
		parts.Console = inspection.NewConsole(j, peers)
	}
	handler := inspection.NewHandler(j, parts)
	return m.Add(onEachReplica(func(ctx context.Context) error { return serveDebugging(ctx, at, handler, log) }))
}

// onEachReplica is a part of the manager that runs whether or not the process leads.
type onEachReplica func(ctx context.Context) error

var _ manager.LeaderElectionRunnable = onEachReplica(nil)

// NeedLeaderElection returns false.
func (onEachReplica) NeedLeaderElection() bool { return false }

// Start runs the function.
func (run onEachReplica) Start(ctx context.Context) error { return run(ctx) }

// serveDebugging serves the explanations, and optionally the console and profiles, until the context ends. If an
// optional address is in use, it logs that and returns nil: the processes on one machine have the same default address.
func serveDebugging(ctx context.Context, at serving.Inspection, handler http.Handler, log logr.Logger) error {
	server, err := inspection.Serve(at.Address, handler)
	switch {
	case err == nil:
		defer server.Close()
		log.Info("Serving explanations; see the command explain", "address", server.Address())
		if at.Console {
			log.Info("Serving the console", "url", "http://"+server.Address()+inspection.ConsolePath)
		}
		if at.Profiling {
			log.Info("Serving profiles", "url", "http://"+server.Address()+inspection.ProfilesPath)
		}
		<-ctx.Done()
		return nil
	case at.Optional:
		log.Info("Not serving explanations: the default address is in use; choose another --debug-bind-address",
			"error", err.Error())
		return nil
	default:
		return err
	}
}
