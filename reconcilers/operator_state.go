package reconcilers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

var _ journal.LiveState = (*operator)(nil)

// OperatorState returns the present state of the operator for the journal. It never sends requests to the API server,
// so it also works while that is unreachable.
func (o *operator) OperatorState() journal.OperatorState {
	s := journal.OperatorState{
		Operator: o.options.Name, Running: o.running.Load(), Paused: !o.options.Gate.Open(),
		PausedNamespaces: o.options.Gate.pausedNamespaces(), UnlistedResources: o.scopes.unfilledScopes(),
	}
	if o.options.Standby != nil && (s.Paused || o.options.Ranges != nil) {
		s.Standby = o.options.Standby()
	}
	if o.options.Sharing != nil {
		sharing := o.options.Sharing()
		s.Sharing = &sharing
	}
	assigned, known := o.scopes.servedAssignments()
	if !known {
		return s // without an answer from discovery, missing kinds are unknown
	}
	for _, a := range assigned {
		s.Kinds = append(s.Kinds, o.servedKind(a))
	}
	// Report handlers without any resource, such as for a CRD that is not installed.
	for _, r := range o.options.Registrations {
		if h := r.Handler; h.FollowsEvents() && !slices.ContainsFunc(assigned, func(a orchestration.Assignment) bool {
			return slices.ContainsFunc(a.Handlers,
				func(own *adapters.HandlerChain) bool { return own.Description == h })
		}) {
			s.AbsentHandlers = append(s.AbsentHandlers,
				journal.AbsentHandler{Handler: h.ID, Selector: r.Selector.String()})
		}
	}
	return s
}

// servedKind returns the state of one kind: its handlers, its namespaces, and the counts of daemons and timers.
func (o *operator) servedKind(a orchestration.Assignment) journal.ServedKind {
	own := adapters.DescriptionsOf(a.Handlers)
	served := o.controllers.JournalOf(a.Resource, a.Handlers).ServedKind(a.Resource, own)
	names, _ := namespacesOf(a.Resource, o.scopes.servedNamespaces).Current()
	served.Namespaces = append(served.Namespaces, names...)
	served.Background = map[string]int{}
	// Several namespaces and ranges may have memory of the kind. Add up their counts.
	for scope, kept := range o.controllers.Memory.AllScopes() {
		if scope.Resource == a.Resource.GroupResource() {
			for one, count := range kept.Background.CountTasks() {
				served.Background[string(one.State)] += count
			}
		}
	}
	return served
}

// currentLoad returns the number of objects that this process has handled, and how many changes are unfinished.
func (o *operator) currentLoad() (objects, unfinished int) {
	for _, kept := range o.controllers.Memory.AllScopes() {
		objects += kept.Objects.CountHandled()
		unfinished += kept.Unhandled.CurrentUnfinished().Changes
	}
	return objects, unfinished
}

// servedAssignments returns the assignments, and whether discovery has answered yet.
func (s *scopes) servedAssignments() (assigned []orchestration.Assignment, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.assignments), s.announced
}

// electionWait is how long a manager without leader election may need to start the operator. After this time, another
// process is assumed to lead. This is a guess, because a manager does not reveal whether it uses leader election.
const electionWait = 2 * time.Second

// addChecks adds the operator's checks to those of the manager, named "<operator>/<check>".
func (o *operator) addChecks(m manager.Manager) error {
	for _, check := range o.health.ReadyChecks() {
		if err := m.AddReadyzCheck(o.options.Name+"/"+check.Name, o.loggedCheck(check)); err != nil {
			return fmt.Errorf("adding a readiness check of operator %q: %w", o.options.Name, err)
		}
	}
	for _, check := range o.health.AliveChecks() {
		if err := m.AddHealthzCheck(o.options.Name+"/"+check.Name, o.loggedCheck(check)); err != nil {
			return fmt.Errorf("adding a health check of operator %q: %w", o.options.Name, err)
		}
	}
	return m.Add(standby{o.health})
}

// loggedCheck converts a check for the manager. It also logs the reason of a failure, because the endpoints of the
// manager show the reason only if the check is requested by its name.
func (o *operator) loggedCheck(check health.Check) func(*http.Request) error {
	return func(*http.Request) error {
		err := check.Run()
		if err != nil {
			o.log.V(1).Info("Check of health or readiness fails", "check", check.Name, "reason", err.Error())
		}
		return err
	}
}

// standby reports that the operator waits for its election. It runs in every process, from the start of the manager on.
type standby struct{ health *health.Health }

var (
	_ manager.Runnable               = standby{}
	_ manager.LeaderElectionRunnable = standby{}
)

// NeedLeaderElection is false, because standby must run before the election.
func (standby) NeedLeaderElection() bool { return false }

// Start waits as long as a manager without leader election needs at most, and then reports the stage. The report has no
// effect if the operator has started meanwhile, because a stage is never replaced by an earlier one.
func (s standby) Start(ctx context.Context) error {
	if transport.WaitDelay(ctx, electionWait) == nil {
		s.health.ReachStage(health.StandingBy)
	}
	return nil
}
