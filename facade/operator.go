package kopf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// Operator is a set of handlers, which [For] and [ForResource] register. Run it with [Main], [Operator.Run] or
// [Operator.SetupWithManager].
type Operator struct {
	name         string
	registry     registry.HandlerRegistry
	userSettings Settings // as the user passed them, with changes by flags and by the startup

	journal  *journal.Journal // nil unless explanations or the console are served
	flags    serving.RunFlags
	settings resolvedSettings // as of the last plan

	startupSettings *Settings // the copy that startup handlers may change
	hasStarted      bool      // the startup has succeeded

	// The lock of the registry also guards the following fields.
	reviewedObjects    reviews.ReviewedObjects
	reviews            *reviews.ReviewServer
	coordination       program.Coordination
	activities         *program.ActivityRunner
	matchingNamespaces *namespaces.LiveNamespaces // namespaces that match Settings.NamespaceLabels
	clients            clientSet
	lateClient         client.Client // for the startup of a program, which has no manager yet
	// stops writes when the manager no longer waits; nil before the set-up
	fence            *reconcilers.Fence
	managerFunctions []func(ctrl.Manager) error // functions of WithManager
	needs            []rbacv1.PolicyRule        // declared by Needs

	// These are arguments of Run. attemptObserver comes from the test kit, and may be nil.
	attemptObserver handlers.AttemptObserver
	runLog          logr.Logger
	runMetrics      prometheus.Registerer // nil is that of controller-runtime

	health    *health.Health // the engine reports its state to it
	ready     chan struct{}  // closed when the operator is at work; see Ready
	readyOnce sync.Once

	defaultNamespace func() string // of the credentials; nil under the project's manager
}

// New returns an operator. The name is a domain name of at most 63 characters, such as "databases.example.org". It is
// the prefix of annotations and the finalizer, the field manager and the source of events. With another name, all
// objects are new. At most one Settings is allowed. The set-up reports mistakes.
func New(name string, settings ...Settings) *Operator {
	op := &Operator{name: name, health: health.New(), ready: make(chan struct{})}
	op.registry.Location, op.registry.Log = registry.CallerLocation(), op.namedLogger
	op.reviews = reviews.NewReviewServer(name, op.registry.Location)
	op.matchingNamespaces = namespaces.NewLive()
	op.coordination.Operator = name
	// The settings are not resolved yet, so the runner reads them at each call.
	op.activities = program.NewActivityRunner(name, &op.registry, func() program.ActivityState {
		return program.ActivityState{
			Backoff:        defaults.NegativeIfImmediate(op.settings.values.Execution.DefaultBackoff),
			CleanupTimeout: op.settings.values.CleanupTimeout,
			Metrics:        op.metricsRegistry(), HasStarted: op.hasStarted,
		}
	})
	// New returns no error, so the set-up reports these.
	if err := validateName(name); err != nil {
		op.registry.Mistakes.AddAt(op.registry.Location, err)
	}
	switch len(settings) {
	case 0:
	case 1:
		op.userSettings = settings[0].deepCopySlices()
	default:
		op.registry.Mistakes.AddAt(op.registry.Location, fmt.Errorf(
			"kopf.New: %d Settings are given: set all fields in one of them", len(settings),
		))
	}
	return op
}

// validateName checks the name as a prefix of annotations, and as the source of events, which limits its length.
func validateName(name string) error {
	if err := keys.ValidatePrefix(name); err != nil {
		return fmt.Errorf("invalid operator name: %w", err)
	}
	if len(name) > validation.LabelValueMaxLength {
		return fmt.Errorf(
			"invalid operator name %q: it has more than %d characters", name, validation.LabelValueMaxLength,
		)
	}
	return nil
}

// namedLogger returns the logger of the operator, with its name.
func (op *Operator) namedLogger() logr.Logger {
	log := logf.Log
	if op.coordination.Embedded {
		log = op.runLog
	}
	return log.WithName(op.name)
}

// metricsRegistry returns the registry of Run, or that of controller-runtime.
func (op *Operator) metricsRegistry() prometheus.Registerer {
	if op.runMetrics != nil {
		return op.runMetrics
	}
	return metrics.Registry
}

// keepJournal makes the operator record its decisions. They cost memory, so they are only recorded for a reader.
func (op *Operator) keepJournal() *journal.Journal {
	op.registry.Lock()
	defer op.registry.Unlock()
	if op.journal == nil {
		op.journal = journal.New(journal.RetentionLimits{}) // the set-up applies the limits of the settings
	}
	return op.journal
}

var errNoOperator = errors.New("the operator is nil or empty: make it with kopf.New")

// isValid returns false for nil and for the zero value.
func (op *Operator) isValid() bool { return op != nil && op.registry.IsValid() }
