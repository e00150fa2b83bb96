package kopf

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/console"
)

// ExplainHandler serves explanations on a server of the project, which must authenticate or listen on localhost. Call
// it before the set-up. See docs/explain.md.
func (op *Operator) ExplainHandler() http.Handler {
	if !op.valid() {
		return http.NotFoundHandler()
	}
	return inspection.Handler(op.keepJournal(), inspection.Parts{})
}

// ConsoleHandler serves /console and the paths below it on a server of the project, which must authenticate or listen
// on localhost. Call it before the set-up. See docs/console.md.
func (op *Operator) ConsoleHandler() http.Handler {
	if !op.valid() {
		return http.NotFoundHandler()
	}
	return console.New(op.keepJournal(), op.peers)
}

// keepJournal makes the operator record its decisions.
func (op *Operator) keepJournal() *journal.Journal {
	op.registry.Lock()
	defer op.registry.Unlock()
	if op.journal == nil {
		op.journal = journal.New(journal.Limits{}) // those of the settings come with the set-up
	}
	return op.journal
}

// inspectAt configures the debug server of the program.
func (op *Operator) inspectAt(at commandline.Inspection) {
	if at.IsOff() {
		return
	}
	op.keepJournal()
	op.registry.Lock()
	defer op.registry.Unlock()
	op.inspection = at
}

// addInspection adds the server, if an address is set.
func (op *Operator) addInspection(m ctrl.Manager) error {
	if op.inspection.Address == "" {
		return nil
	}
	i := inspector{at: op.inspection, journal: op.journal, log: op.logger()}
	i.parts.Profiling = i.at.Profiling
	if i.at.Console {
		i.parts.Console = console.New(op.journal, op.peers)
	}
	return m.Add(i)
}

// peers are the records of all operators of the peering that are known by now.
func (op *Operator) peers() []attendance.Peer {
	if present := op.present.Load(); present != nil {
		return present.Peers()
	}
	return nil
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
