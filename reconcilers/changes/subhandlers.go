package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// subHandlers are those of one running function, which waits for them. They run one at a time, each on a goroutine of
// its own; all that has to do with outcomes runs on the goroutine of the pass.
type subHandlers struct {
	invocation *invocation
	runner     *runner
	handler    *adapters.Handler // whose sub-handlers they are
	parent     *execution.Attempt
	ancestors  []string

	mu       sync.Mutex
	declared []*adapters.Handler // those that are not known to be finished
	ids      map[string][]string // of all that were declared, with their former ids
	claims   map[string]string   // the former ids that were given to sub-handlers, with their present ids
	running  bool

	waiting    []*execution.HandlerState // those with room that wait for their first call, in the order of declaration
	remeasured bool                      // the budget was measured anew in this run
	logged     bool                      // it was logged that there is too little room
}

// subHandler is one of them with its state.
type subHandler struct {
	handler *adapters.Handler
	state   *execution.HandlerState
}

// errRunning is a mistake of the parent function: it would wait for itself.
var errRunning = errors.New("the sub-handlers are running already")

var _ handlers.Subs = (*subHandlers)(nil)

// duplicateError is a mistake of the parent function: it would be one for ever.
type duplicateError struct{ id string }

// Error names the sub-handler.
func (e *duplicateError) Error() string {
	return fmt.Sprintf("sub-handler %q is declared twice: give each an id of its own", e.id)
}

// Permanent is true.
func (e *duplicateError) Permanent() bool { return true }

// Declare adds a sub-handler for the next run.
func (s *subHandlers) Declare(h *handlers.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.handler.Sub(h)
	id := own.Description.ID
	if _, twice := s.ids[id]; twice {
		return &duplicateError{id}
	}
	if s.ids == nil {
		s.ids = map[string][]string{}
	}
	if err := s.claim(id, h.FormerIDs); err != nil {
		return err
	}
	s.ids[id] = own.Description.FormerIDs
	s.declared = append(s.declared, own)
	return nil
}

// claim notes the former ids of a sub-handler. Each belongs to one sub-handler, and is not the id of any.
func (s *subHandlers) claim(id string, former []string) error {
	if present, claimed := s.claims[id]; claimed {
		return s.formerIDTaken(present, id)
	}
	for _, old := range former {
		old = s.id(old)
		_, declared := s.ids[old]
		if _, claimed := s.claims[old]; claimed || declared || old == id {
			return s.formerIDTaken(id, old)
		}
		if s.claims == nil {
			s.claims = map[string]string{}
		}
		s.claims[old] = id
	}
	return nil
}

func (s *subHandlers) formerIDTaken(id, former string) error {
	return &declarationError{
		fmt.Sprintf("sub-handler %q: the former id %q belongs to another sub-handler as well; only "+
			"one can have it", id, former),
	}
}

// presentID returns the id of the sub-handler that has had this one, or nothing.
func (s *subHandlers) presentID(own string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[s.id(own)]
}

// dropFinished leaves out of further runs what is finished: a function may run each of its sub-handlers when it has
// declared it.
func (s *subHandlers) dropFinished(all []subHandler) {
	finished := make(map[*adapters.Handler]bool, len(all))
	for _, sub := range all {
		finished[sub.handler] = sub.state.Finished()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared = slices.DeleteFunc(s.declared, func(h *adapters.Handler) bool { return finished[h] })
}

// Record is what is known of a sub-handler, be it declared or not: what came of it in this process, or before.
func (s *subHandlers) Record(id string) (record progress.Record, err error) {
	err = s.invocation.onPass(func() error {
		state, err := s.known(s.id(id))
		if err == nil {
			record = state.Record()
		}
		return err
	})
	return record, err
}

// id is the full one of a sub-handler.
func (s *subHandlers) id(own string) string { return handlers.SubID(s.handler.Description.ID, own) }

// own is the id of a sub-handler without that of its handler.
func (s *subHandlers) own(h *adapters.Handler) string {
	return strings.TrimPrefix(h.Description.ID, s.id(""))
}

// isDeclared tells whether there is such a sub-handler in this call of the function, be it finished or not.
func (s *subHandlers) isDeclared(own string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, declared := s.ids[s.id(own)]
	return declared
}

// known is the state of a sub-handler by its full id, whether it is declared or not.
func (s *subHandlers) known(id string) (*execution.HandlerState, error) {
	s.mu.Lock()
	former := s.ids[id]
	s.mu.Unlock()
	return s.runner.outcomes.state.Known(id, former, s.handler.Description.ID, s.runner.pass.handling.Now())
}

// call makes one attempt. What it does to the object is seen by the parent, and by those after it.
func (s *subHandlers) call(ctx context.Context, sub subHandler, account func() execution.Account) error {
	var a *execution.Attempt
	if err := s.invocation.onPass(func() error {
		now := account()
		if len(now.Awaits) > 0 {
			return nil // what it comes after was finished, but has been refused meanwhile
		}
		object, err := s.parent.Copied()
		if err != nil {
			return err
		}
		ok, err := s.reserveForCall(sub.state)
		if ok {
			a = s.runner.attempt(sub.handler, sub.state, nil, nil)
			a.Account, a.Call.Object = now, object
		}
		return err
	}); err != nil || a == nil {
		return err
	}
	s.invocation.prepare(sub.handler, a, s.ancestors)
	sub.handler.Run(logf.IntoContext(ctx, s.invocation.log), a)
	err := s.invocation.onPass(func() error {
		if err := s.runner.conclude(a); err != nil || s.runner.pass.object.gone {
			return err
		}
		return s.returnUnused(sub.state)
	})
	if err == nil && a.Outcome.Aborted {
		return context.Cause(ctx)
	}
	s.parent.Adopt(a)
	return err
}
