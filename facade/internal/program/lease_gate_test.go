package program_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// freeLock is a lock of a leader election without other candidates.
type freeLock struct {
	held *resourcelock.LeaderElectionRecord
}

func (l *freeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.held == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "free")
	}
	return l.held, nil, nil
}

func (l *freeLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.held = &record
	return nil
}

func (l *freeLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Create(ctx, record)
}

func (*freeLock) RecordEvent(string) {}
func (*freeLock) Identity() string   { return "me" }
func (*freeLock) Describe() string   { return "free" }

// TestLeaseGate shows that objects need the gate only while a manager of the process leads after an election. Other
// metrics do not count.
func TestLeaseGate(t *testing.T) {
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other_status", Help: "Another gauge."})
	other.Set(1)
	if err := metrics.Registry.Register(other); err != nil {
		t.Fatal(err)
	}
	defer metrics.Registry.Unregister(other)
	c, options := program.Coordination{Operator: operator}, &reconcilers.Options{}
	if err := c.AddToManager(nil, options, program.CoordinationSettings{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	leads := make(chan bool, 1)
	election := leaderelection.LeaderElectionConfig{
		Lock: &freeLock{}, Name: "lease-gate", LeaseDuration: time.Hour, RenewDeadline: time.Minute,
		RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				leads <- options.NeedsGate()
				stop()
			},
			OnStoppedLeading: func() {},
		},
	}
	// An elector sets its metric to zero when it is made.
	checkCandidate := func() *leaderelection.LeaderElector {
		elector, err := leaderelection.NewLeaderElector(election)
		if err != nil {
			t.Fatal(err)
		}
		if options.NeedsGate() {
			t.Error("while no manager leads, objects bypass the gate")
		}
		return elector
	}
	checkCandidate().Run(ctx)
	if !<-leads {
		t.Error("in a manager that leads, objects need the gate, as the lease can be lost")
	}
	checkCandidate()
}
