package reconcilers

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
)

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
	select {
	case <-ctx.Done():
	case <-time.After(electionWait):
		s.health.ReachStage(health.StandingBy)
	}
	return nil
}
