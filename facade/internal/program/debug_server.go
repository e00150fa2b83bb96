package program

import (
	"context"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/console"
)

// AddDebugServer adds a server of explanations to the manager, unless it is off.
func AddDebugServer(
	m ctrl.Manager, at commandline.Inspection, j *journal.Journal, peers func() []attendance.Peer, log logr.Logger,
) error {
	if at.IsOff() {
		return nil
	}
	i := inspector{at: at, journal: j, log: log}
	i.parts.Profiling = at.Profiling
	if at.Console {
		i.parts.Console = console.New(j, peers)
	}
	return m.Add(i)
}

// inspector serves what the operator knows as long as the manager runs.
type inspector struct {
	at      commandline.Inspection
	journal *journal.Journal
	parts   inspection.Parts
	log     logr.Logger
}

var _ manager.LeaderElectionRunnable = inspector{}

// NeedLeaderElection is false: each replica can be asked.
func (inspector) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (i inspector) Start(ctx context.Context) error {
	server, err := inspection.Serve(i.at.Address, inspection.Handler(i.journal, i.parts))
	switch {
	case err == nil:
		defer server.Close()
		i.log.Info("Serving explanations; see the command explain", "address", server.Address())
		if i.at.Console {
			i.log.Info("Serving the console", "url", "http://"+server.Address()+console.Path)
		}
		if i.at.Profiling {
			i.log.Info("Serving profiles", "url", "http://"+server.Address()+inspection.ProfilesPath)
		}
		<-ctx.Done()
		return nil
	case i.at.Optional:
		i.log.Info("Not serving explanations: the default address is in use; choose another --debug-bind-address",
			"error", err.Error())
		return nil
	default:
		return err
	}
}
