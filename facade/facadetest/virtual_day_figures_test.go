package facadetest_test

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// managerOperator runs operators in a manager of controller-runtime, without observing them.
type managerOperator struct {
	t      testing.TB
	cancel context.CancelFunc
	ended  <-chan error
}

// settle sleeps longer than the retries of a day take.
func (managerOperator) settle()                    { time.Sleep(2 * time.Hour) }
func (managerOperator) quiet(during time.Duration) { time.Sleep(during) }

func (b managerOperator) stop() {
	b.cancel()
	if err := <-b.ended; err != nil {
		b.t.Error(err)
	}
}

func (d *day) startByHand(server *memapi.Server, calls *callCounter) {
	d.startOperator = func() runningOperator {
		m, err := ctrl.NewManager(memapi.Config(server), ctrl.Options{
			Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
			Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		})
		if err != nil {
			d.t.Fatal(err)
		}
		op := newShopOperator(calls)
		if err := op.SetupWithManager(m); err != nil {
			d.t.Fatal(err)
		}
		ctx, end := context.WithCancel(d.t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		<-op.Ready()
		return managerOperator{d.t, end, ended}
	}
}

// dayCosts holds the costs of a day.
type dayCosts struct {
	wallTime time.Duration
	allocs   uint64
	calls    map[string]int
}

// measure plays a day and returns its costs and the calls of handlers.
func measure(t *testing.T, shops int, start func(d *day, server *memapi.Server, calls *callCounter)) (s dayCosts) {
	t.Helper()
	calls := newCallCounter()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now() // outside of the bubble, where time is real
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		d := newDay(t, server, shops)
		start(d, server, calls)
		d.playDay()
	})
	s.wallTime, s.calls = time.Since(began), calls.calls
	runtime.ReadMemStats(&after)
	s.allocs = after.Mallocs - before.Mallocs
	return s
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// TestVirtualDayFigures compares the costs of the kit with those of the same operator in a manager of
// controller-runtime, against the same server. VIRTUAL_DAYS sets the number of compared days.
func TestVirtualDayFigures(t *testing.T) {
	rounds, shops := 1, 1
	if asked := os.Getenv("VIRTUAL_DAYS"); asked != "" {
		var err error
		if rounds, err = strconv.Atoi(asked); err != nil {
			t.Fatal(err)
		}
		shops = 10
	}
	var walls, allocs []float64
	for range rounds {
		without := measure(t, shops, (*day).startByHand)
		with := measure(t, shops, func(d *day, server *memapi.Server,
			calls *callCounter) {
			d.startWithKit(server, calls)
		})
		if diff := cmp.Diff(without.calls, with.calls); diff != "" {
			t.Errorf("the calls must be the same with and without the kit (-without, +with):\n%s", diff)
		}
		walls = append(walls, with.wallTime.Seconds()/without.wallTime.Seconds())
		allocs = append(allocs, float64(with.allocs)/float64(without.allocs))
		t.Logf("with the kit %s and %d allocations, by hand %s and %d",
			with.wallTime, with.allocs, without.wallTime, without.allocs)
	}
	wall, alloc := median(walls), median(allocs)
	t.Logf("%d days of %d shops: with the kit %.2f times the wall time, %.2f times the allocations",
		rounds, shops, wall, alloc)
	if alloc > 2 || rounds > 4 && wall > 2 { // other programs may slow down a single day
		t.Error("the kit must cost at most as much as the operator itself")
	}
}
