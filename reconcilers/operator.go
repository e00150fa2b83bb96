package reconcilers

import (
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

// operator is one operator inside a manager: the Runnable that owns its controllers.
//
// Options.Begin may replace the options after the set-up. SetupWithManager adds one operator to the manager; its Start
// then builds a second one from the replaced options, and everything else runs on the second one.
type operator struct {
	manager      manager.Manager
	fence        *Fence
	options      Options
	log          logr.Logger
	claim        *claim
	poster       *posting.QueuePoster
	health       *health.Health
	metrics      *metrics.OperatorMetrics
	assignments  sync.Map // the last orchestration.Assignment of each schema.GroupResource
	controllers  *controller.Dependencies
	orchestrator *orchestration.Orchestrator
	scopes       *scopes
	indexing     *indexing // nil if only the controllers fill the indices

	running        atomic.Bool   // true while the controllers run
	filledOnce     sync.Once     // limits Options.Filled to one call
	beginSemaphore chan struct{} // a semaphore: full while one caller runs Options.Begin
	begunOperator  *operator     // result of Options.Begin, kept for the second caller
	beginErr       error
	endCaller      atomic.Int32 // 0, endByController or endByReplica: who calls Options.End
}

// The values of operator.ends. If the controllers have ever run in the process, they call Options.End, because their
// handlers return last; otherwise the replica does.
const (
	endByController = iota + 1
	endByReplica
)
