package facadetest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// HandlerCall is one attempt of one handler.
type HandlerCall struct {
	// Handler is its id; that of a sub-handler has those of its parents in front, such as "create/volume".
	Handler string
	// Reason is what it was called for: create, update, delete or resume; startup, login, probe or cleanup; the type of
	// a raw event; the operation of a request for admission. It is empty for daemons and timers.
	Reason string
	// Kind, Namespace and Name are the object's; empty without one.
	Kind, Namespace, Name string
	// Attempt counts from 1.
	Attempt int
	// Outcome is as in the metrics: success, ignored, retry, failure, aborted; empty while the function runs. A success
	// becomes another outcome if the API server refuses what the handler has made.
	Outcome string
	// Err is the error of the outcome.
	Err error
	// Began and Ended are when; Ended is zero while the function runs.
	Began, Ended time.Time

	lasting bool   // a daemon, which ends with its object
	lane    string // of what is called one after the other: empty for the changes of an object
	moment  moment
}

// String is the call in a line, such as
//
//	create ConfigMap default/world: greet #2: retry: not yet
//
// It has no times, so that calls of two runs can be compared.
func (c HandlerCall) String() string {
	about := cmp.Or(c.Reason, "run")
	if c.Kind != "" {
		about += " " + c.Kind + " " + nameOf(c.Namespace, c.Name)
	}
	text := fmt.Sprintf("%s: %s #%d: %s", about, c.Handler, c.Attempt, cmp.Or(c.Outcome, "running"))
	if c.Err != nil {
		text += ": " + c.Err.Error()
	}
	return text
}

func nameOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// calls are those of one operator, in the order in which they began.
type calls struct {
	mu   sync.Mutex
	all  []*HandlerCall
	zero time.Time // when the operator was ready, or was called for an object before
}

// begin is called when the operator is ready.
func (c *calls) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginAt(time.Now())
}

func (c *calls) beginAt(now time.Time) {
	if c.zero.IsZero() {
		c.zero = now
	}
}

// beginning is the zero of what the operator does; the present as long as it does nothing.
func (c *calls) beginning() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zero.IsZero() {
		return time.Now()
	}
	return c.zero
}

// observe notes an attempt, and its outcome.
func (c *calls) observe(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
	noted := describe(call)
	c.mu.Lock()
	c.all = append(c.all, noted)
	if noted.Kind != "" {
		c.beginAt(noted.Began)
	}
	c.mu.Unlock()
	return ctx, func(outcome string, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		noted.Outcome, noted.Err = outcome, err
		if noted.Ended.IsZero() { // a refused write may change the outcome later
			noted.Ended = time.Now()
		}
	}
}

func describe(call *handlers.Invocation) *HandlerCall {
	h := call.Handler
	noted := &HandlerCall{Handler: h.ID, Attempt: call.Retry + 1, Began: time.Now(), Reason: h.Activity}
	noted.lasting = h.Family == handlers.Spawning && h.Background.Daemon
	if h.Family != handlers.Changing {
		noted.lane = cmp.Or(h.Activity, h.ID)
	}
	if call.Cause == nil {
		return noted
	}
	object := unstructured.Unstructured{Object: call.Cause.Body()}
	noted.Kind, noted.Namespace, noted.Name = object.GetKind(), object.GetNamespace(), object.GetName()
	noted.Reason = cmp.Or(string(call.Cause.Reason), call.Cause.Type, h.Activity)
	if asked := call.Admission; asked != nil {
		noted.Reason = asked.Operation
	}
	return noted
}

// list copies them, as they are by now.
func (c *calls) list() []HandlerCall {
	zero := c.beginning()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]HandlerCall, 0, len(c.all))
	for _, one := range c.all {
		told := *one
		told.moment = momentOf(told.Began, zero)
		all = append(all, told)
	}
	return all
}
