package kopf

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// Operator is a set of handlers, which [For] and [ForResource] register. Run it with [Main], [Operator.Run] or
// [Operator.SetupWithManager].
type Operator struct {
	name     string
	location string   // of New
	given    Settings // as the user has them

	journal    *journal.Journal // nil if explanations are not served
	inspection commandline.Inspection
	listening  addresses
	settings   resolvedSettings // as of the last plan

	changing *Settings // what handlers of the startup change
	probing  *activities.Probing
	started  bool // the startup has succeeded

	mu            sync.Mutex
	registrations []registration
	activities    []*handlers.Handler
	memos         []func(types.UID)
	reviewed      reviewed
	indexed       gate
	indexes       map[indexKey]*indexes.Index
	creations     creations
	matching      *namespaces.Live                 // those that match by their labels, if these matter
	judged        atomic.Pointer[namespaces.Scope] // the namespaces of admission, as of the last plan
	ownWrites     atomic.Pointer[review.OwnWrites] // as of the last plan
	errs          setupErrors
	stage         stage
	filled        *runtime.Scheme // the last one that the types were added to
	clients       clients
	late          client.Client      // of the startup; nil under the project's manager
	fence         *reconcilers.Fence // nil before the set-up
	lock          *peeringLock       // nil unless it was asked for
	lease         peering.Lease      // of the project's manager
	present       atomic.Pointer[attendance.Attendance]
	program       bool // it is that of Main
	managed       []managed
	cluster       serving.Cluster // that of the flags

	observed  handlers.Observer // of the caller of Run; may be nil
	inProcess *kit.Webhooks     // answers admission reviews without a port; nil in products
	reviews   bool              // handlers of admission are served
	embedding bool              // by Run
	embedded  RunSettings

	health *health.Health // of the engine
	ready  chan struct{}  // closed when it is at work
	atWork sync.Once

	defaultNamespace func() string // that of the credentials; nil under the project's manager
}

// stage is the progress of an operator. A handler that is registered too late would never be called.
type stage int

const (
	registering stage = iota
	starting
	setUp
	running
)

// New returns an operator. The name is a domain name of at most 63 characters, such as "databases.example.org". It is
// the prefix of annotations and the finalizer, the field manager and the source of events. With another name, all
// objects are new. At most one Settings is allowed. The set-up reports mistakes.
func New(name string, settings ...Settings) *Operator {
	op := &Operator{name: name, location: location(), health: health.New(), ready: make(chan struct{})}
	op.matching = namespaces.NewLive()
	op.probing = op.newProbing()
	if err := validateName(name); err != nil {
		op.errs.add(op.location, err)
	}
	switch len(settings) {
	case 0:
	case 1:
		op.given = settings[0].clone()
	default:
		op.errs.add(op.location, fmt.Errorf(
			"kopf.New: %d Settings are given: set all fields in one of them", len(settings),
		))
	}
	return op
}

// validateName checks the strictest use of the name: the source of events.
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

// register adds a handler; too late, it is an error.
func (op *Operator) register(r registration) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.stage != registering {
		err := fmt.Errorf(
			"%s(%q): registered after the operator was set up, so it is never called", r.verb, r.handler.ID,
		)
		op.keepError(r.handler.Location, err)
		return
	}
	op.registrations = append(op.registrations, r)
}

// addError keeps an error of the user's call for the set-up.
func (op *Operator) addError(where string, err error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.keepError(where, err)
}

// keepError keeps an error for the set-up, or for the start after it. Once the operator runs, the log is all there is.
func (op *Operator) keepError(where string, err error) {
	op.errs.add(where, err)
	if op.stage == running {
		log := op.logger()
		log.Error(err, "Ignoring a handler that was registered after the start of the operator", "location", where)
	}
}
