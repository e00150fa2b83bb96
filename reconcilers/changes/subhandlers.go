package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// subHandlers runs the sub-handlers of one running function, which waits for them. They run one at a time, each on its
// own goroutine. All access to outcomes happens on the goroutine of the pass.
type subHandlers struct {
	invocation *invocation
	runner     *runner
	handler    *adapters.HandlerChain // the parent
	parent     *execution.Attempt
	ancestors  []string

	mu                  sync.Mutex
	declared            []*adapters.HandlerChain // those that are not known to be finished
	formerIDsByID       map[string][]string      // the ids of all declared sub-handlers, with their former ids
	presentIDByFormerID map[string]string        // the former ids of sub-handlers, with their present ids
	running             bool                     // a run is in progress

	uncalledStates   []*execution.HandlerState // with room, before their first call; in the order of declaration
	remeasured       bool                      // this run has measured the budget a second time
	isShortageLogged bool                      // the lack of room was logged
}

// subHandler is a sub-handler with its state.
type subHandler struct {
	handler *adapters.HandlerChain
	state   *execution.HandlerState
}

// errRunning reports a mistake of the parent function: a nested run would wait for itself.
var errRunning = errors.New("the sub-handlers are running already")

var _ handlers.Subs = (*subHandlers)(nil)

// Declare adds a sub-handler for the next run.
func (s *subHandlers) Declare(h *handlers.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.handler.NewSubHandler(h)
	id := own.Description.ID
	if _, twice := s.formerIDsByID[id]; twice {
		return &permanentError{fmt.Sprintf("sub-handler %q is declared twice: give each an id of its own", id)}
	}
	if s.formerIDsByID == nil {
		s.formerIDsByID = map[string][]string{}
	}
	if err := s.claimFormerIDs(id, h.FormerIDs); err != nil {
		return err
	}
	s.formerIDsByID[id] = own.Description.FormerIDs
	s.declared = append(s.declared, own)
	return nil
}

// claimFormerIDs registers the former ids of a sub-handler. Each former id belongs to one sub-handler, and is not a
// present id.
func (s *subHandlers) claimFormerIDs(id string, former []string) error {
	// This id is the former id of another sub-handler.
	if present, claimed := s.presentIDByFormerID[id]; claimed {
		return s.formerIDError(present, id)
	}
	for _, old := range former {
		old = s.fullID(old)
		_, declared := s.formerIDsByID[old]
		if _, claimed := s.presentIDByFormerID[old]; claimed || declared || old == id {
			return s.formerIDError(id, old)
		}
		if s.presentIDByFormerID == nil {
			s.presentIDByFormerID = map[string]string{}
		}
		s.presentIDByFormerID[old] = id
	}
	return nil
}

// formerIDError returns the error for a former id that two sub-handlers claim.
func (s *subHandlers) formerIDError(id, former string) error {
	return &permanentError{
		fmt.Sprintf("sub-handler %q: the former id %q belongs to another sub-handler as well; only "+
			"one can have it", id, former),
	}
}

// presentID returns the present id of the sub-handler with this former id; empty if there is none.
func (s *subHandlers) presentID(own string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.presentIDByFormerID[s.fullID(own)]
}

// dropFinished removes finished sub-handlers from later runs. A function can run each sub-handler right after its
// declaration, and the cost of a run must not grow with those before.
func (s *subHandlers) dropFinished(all []subHandler) {
	finished := make(map[*adapters.HandlerChain]bool, len(all))
	for _, sub := range all {
		finished[sub.handler] = sub.state.IsFinished()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared = slices.DeleteFunc(s.declared, func(h *adapters.HandlerChain) bool { return finished[h] })
}

// RecordOf returns the progress of a sub-handler, whether or not it is declared: from this process, or from the object.
func (s *subHandlers) RecordOf(id string) (record progress.Record, err error) {
	// The states belong to the pass, so they are read on its goroutine.
	err = s.invocation.runOnPass(func() error {
		state, err := s.knownState(s.fullID(id))
		if err == nil {
			record = state.AsRecord()
		}
		return err
	})
	return record, err
}

// fullID returns the full id of a sub-handler.
func (s *subHandlers) fullID(own string) string { return handlers.SubID(s.handler.Description.ID, own) }

// relativeID returns the id of a sub-handler relative to its parent.
func (s *subHandlers) relativeID(h *adapters.HandlerChain) string {
	return strings.TrimPrefix(h.Description.ID, s.fullID(""))
}

// isDeclared reports whether this call of the function has declared the sub-handler, finished or not.
func (s *subHandlers) isDeclared(own string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, declared := s.formerIDsByID[s.fullID(own)]
	return declared
}

// knownState returns the state of a sub-handler by its full id, whether or not it is declared.
func (s *subHandlers) knownState(id string) (*execution.HandlerState, error) {
	s.mu.Lock()
	former := s.formerIDsByID[id]
	s.mu.Unlock()
	return s.runner.outcomes.state.KnownSub(id, former, s.handler.Description.ID, s.runner.pass.handling.Now())
}

// makeAttempt makes one attempt. The parent and later sub-handlers see its changes.
func (s *subHandlers) makeAttempt(ctx context.Context, sub subHandler, account func() execution.Account) error {
	var a *execution.Attempt
	// Prepare the attempt on the goroutine of the pass, run it on this one, and conclude it on that of the pass.
	if err := s.invocation.runOnPass(func() error {
		now := account()
		if len(now.UnfinishedDependencies) > 0 {
			return nil // a dependency was finished, but its write was refused meanwhile
		}
		object, err := s.parent.CopyObject()
		if err != nil {
			return err
		}
		ok, err := s.reserveForCall(sub.state)
		if ok {
			a = s.runner.newAttempt(sub.handler, sub.state, nil, nil)
			a.Account, a.Call.Object = now, object
		}
		return err
	}); err != nil || a == nil {
		return err
	}
	s.invocation.prepareCall(sub.handler, a, s.ancestors)
	sub.handler.RunAttempt(logf.IntoContext(ctx, s.invocation.log), a)
	err := s.invocation.runOnPass(func() error {
		if err := s.runner.concludeAttempt(a); err != nil || s.runner.pass.object.gone {
			return err
		}
		// The reservation of the call is larger than its outcome.
		return s.returnUnused(sub.state)
	})
	// An aborted attempt did not run to its end, so its changes are not adopted.
	if err == nil && a.Outcome.Aborted {
		return context.Cause(ctx)
	}
	s.parent.AdoptChanges(a)
	return err
}

// subRun is one run of the sub-handlers that are declared so far.
type subRun struct {
	subs         *subHandlers
	lifecycle    handlers.Lifecycle
	selectedSubs []subHandler // the selected ones, in the order of declaration
	queue        []int        // indexes in all of the sub-handlers to be called
	dependencies dependencies
}

// permanentError reports a wrong declaration of sub-handlers, or too many of them. It is permanent, as the function
// would repeat it.
type permanentError struct{ text string }

// Error returns the text.
func (e *permanentError) Error() string { return e.text }

// Permanent returns true.
func (e *permanentError) Permanent() bool { return true }
