package kopf

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// callState serializes the method calls of one call of a handler, which may come from several of its goroutines. It
// keeps their errors until the handler returns, because these methods do not return errors.
type callState struct {
	log         logr.Logger // of the handler
	mu          sync.Mutex
	errs        []error     // of method calls; they fail the handler when it returns
	hasReturned atomic.Bool // atomic, because readers of the newest state do not lock
}

// lock waits for other method calls of the handler. In a function of Patch, it panics: the call of Patch holds the
// lock, so the function would wait for itself forever. The panic becomes an error of the patch.
func (s *callState) lock() {
	// The test for a surrounding Patch walks the stack, so it is only made if the lock is held.
	if s.mu.TryLock() {
		return
	}
	if codec.IsInCall() {
		panic(errCalledInPatch)
	}
	s.mu.Lock()
}

// run runs one method call at a time, and keeps its error.
func (s *callState) run(act func() error) {
	s.lock()
	defer s.mu.Unlock()
	if s.hasReturned.Load() {
		s.log.Error(errReturned, "Ignoring a call by a goroutine that outlived its handler")
		return
	}
	if err := act(); err != nil {
		s.errs = append(s.errs, err)
	}
}

// end rejects later method calls, and joins the errors of earlier ones with err. The caller holds the lock.
func (s *callState) end(err error) error {
	s.hasReturned.Store(true)
	if len(s.errs) > 0 {
		err = errors.Join(append([]error{err}, s.errs...)...)
	}
	return err
}

// clientSet contains the means of handlers to read and write other objects. It is copied into each call.
type clientSet struct {
	// client is the client of handlers, and apiReader reads without a cache.
	client    client.Client
	apiReader client.Reader
	children  *children.Keeper
	keys      *listKeys // nil without a manager
	// finalizer is the name of the operator's finalizer.
	finalizer string
	// watchScopes reports for WaitFor whether the kind is watched as children of the resource, or as any objects.
	watchScopes func(owner discovery.Resource, kind schema.GroupKind) (children, objects bool)
}

// errWithoutOperator is returned by methods of a Change, Task, WatchEvent or Admission that does not come from an
// operator.
var errWithoutOperator = errors.New("kopf: only an operator creates a Change, Task, WatchEvent or Admission; in a " +
	"test, use NewChange, NewTask, NewWatchEvent or NewAdmission of package facadetest " +
	"(github.com/kopf-runtime/kopf-runtime/facade/facadetest)")

var errReturned = errors.New("the handler has returned: its object cannot be changed any more")

var errReadOnly = errors.New("a filter can neither change the object nor post events: leave that to a handler")

var errCalledInPatch = errors.New(
	"a function of Patch uses a method of its handler's Change, or kopf.Result or kopf.FieldChange: " +
		"call that before Patch",
)
