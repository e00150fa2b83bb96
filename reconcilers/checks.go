package reconcilers

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
)

// election is how long the manager may take from its start to the operator's. If it takes longer, another process is
// the leader: managers do not tell whether they elect one.
const election = 2 * time.Second

// addChecks adds the operator's checks to those of the manager, by the names "<operator>/<check>".
func (o *operator) addChecks(m manager.Manager) error {
	for _, check := range o.health.Ready() {
		if err := m.AddReadyzCheck(o.options.Name+"/"+check.Name, o.asked(check)); err != nil {
			return fmt.Errorf("adding a readiness check of operator %q: %w", o.options.Name, err)
		}
	}
	for _, check := range o.health.Alive() {
		if err := m.AddHealthzCheck(o.options.Name+"/"+check.Name, o.asked(check)); err != nil {
			return fmt.Errorf("adding a health check of operator %q: %w", o.options.Name, err)
		}
	}
	return m.Add(standby{o.health})
}

// asked is a check as the manager asks for it. It says what is wrong to those who ask for it by its name alone, so the
// log has it, too.
func (o *operator) asked(check health.Check) func(*http.Request) error {
	return func(*http.Request) error {
		err := check.Run()
		if err != nil {
			o.log.V(1).Info("Check of health or readiness fails", "check", check.Name, "reason", err.Error())
		}
		return err
	}
}

// standby notes that the manager waits for being elected, as it runs before that.
type standby struct{ health *health.Health }

var (
	_ manager.Runnable               = standby{}
	_ manager.LeaderElectionRunnable = standby{}
)

// NeedLeaderElection is false.
func (standby) NeedLeaderElection() bool { return false }

// Start waits for longer than a manager without an election takes to start the operator.
func (s standby) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(election):
		s.health.Reach(health.StandingBy)
	}
	return nil
}
