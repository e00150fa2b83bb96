package facadetest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// HandlerCall is one attempt of one handler.
type HandlerCall struct {
	// Handler is the handler id. A sub-handler's id starts with the ids of its parents, as in "create/volume".
	Handler string
	// Reason is the reason of the call: create, update, delete or resume; startup, login, probe or cleanup; the type of
	// a raw event; or the operation of an admission request. It is empty for daemons and timers.
	Reason string
	// Kind, Namespace and Name identify the object. They are empty for calls without an object.
	Kind, Namespace, Name string
	// Attempt counts from 1.
	Attempt int
	// Outcome is the outcome as in the metrics: success, ignored, retry, failure or aborted. It is empty while the
	// function runs. A success becomes another outcome if the API server refuses the handler's changes.
	Outcome string
	// Err is the error of the outcome.
	Err error
	// Began and Ended are the start and the end of the attempt; Ended is zero while the function runs.
	Began, Ended time.Time

	isDaemon bool   // true for a daemon, which runs as long as its object exists
	lane     string // calls in one lane are sequential; empty for changes of an object
	moment   moment
}

// String returns the call as one line, such as
//
//	create ConfigMap default/world: greet #2: retry: not yet
//
// It leaves out the times, so that the calls of two runs can be compared.
func (c HandlerCall) String() string {
	about := cmp.Or(c.Reason, "run")
	if c.Kind != "" {
		about += " " + c.Kind + " " + qualifiedName(c.Namespace, c.Name)
	}
	text := fmt.Sprintf("%s: %s #%d: %s", about, c.Handler, c.Attempt, cmp.Or(c.Outcome, "running"))
	if c.Err != nil {
		text += ": " + c.Err.Error()
	}
	return text
}

// qualifiedName returns "namespace/name", or only the name of a cluster-scoped object.
func qualifiedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// calls records the handler calls of one operator, in the order of their starts. Many goroutines call handlers at once.
type calls struct {
	mu       sync.Mutex
	all      []*HandlerCall
	timeZero time.Time // time zero of golden files: readiness, or an earlier call for an object
}

// markReady sets time zero when the operator becomes ready. An earlier call for an object has priority.
func (c *calls) markReady() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setZeroOnce(time.Now())
}

// setZeroOnce sets time zero, unless it is set. The caller holds the lock.
func (c *calls) setZeroOnce(now time.Time) {
	if c.timeZero.IsZero() {
		c.timeZero = now
	}
}

// zeroTime returns time zero, or the present time if the operator is not ready yet.
func (c *calls) zeroTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timeZero.IsZero() {
		return time.Now()
	}
	return c.timeZero
}

// observeAttempt records an attempt when it starts, and its outcome when it ends. It is a [handlers.AttemptObserver].
func (c *calls) observeAttempt(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
	noted := newHandlerCall(call)
	c.mu.Lock()
	c.all = append(c.all, noted)
	if noted.Kind != "" {
		c.setZeroOnce(noted.Began)
	}
	c.mu.Unlock()
	return ctx, func(outcome string, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		noted.Outcome, noted.Err = outcome, err
		if noted.Ended.IsZero() { // a refused write can change the outcome later
			noted.Ended = time.Now()
		}
	}
}

// newHandlerCall returns the record of an attempt that starts now.
func newHandlerCall(call *handlers.Invocation) *HandlerCall {
	h := call.Handler
	noted := &HandlerCall{Handler: h.ID, Attempt: call.Retry + 1, Began: time.Now(), Reason: h.Activity}
	noted.isDaemon = h.Family == handlers.Background && h.Background.Daemon
	// Handlers of changes run one after the other for each object, so their order is fixed. All other handlers run
	// concurrently, each in its own lane.
	if h.Family != handlers.Changing {
		noted.lane = cmp.Or(h.Activity, h.ID)
	}
	// Activities have no cause and no object.
	if call.Cause == nil {
		return noted
	}
	object := unstructured.Unstructured{Object: call.Cause.Body()}
	noted.Kind, noted.Namespace, noted.Name = object.GetKind(), object.GetNamespace(), object.GetName()
	// Changes have a reason, and events have a type.
	noted.Reason = cmp.Or(string(call.Cause.Reason), call.Cause.EventType, h.Activity)
	if asked := call.Admission; asked != nil {
		noted.Reason = asked.Operation
	}
	return noted
}

// copyCalls returns copies of all calls in their present state. It computes their moments only now, because time zero
// may have been unknown when they started.
func (c *calls) copyCalls() []HandlerCall {
	zero := c.zeroTime()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]HandlerCall, 0, len(c.all))
	for _, one := range c.all {
		told := *one
		told.moment = newMoment(told.Began, zero)
		all = append(all, told)
	}
	return all
}
