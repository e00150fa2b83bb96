package changes

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Waits knows the children that handlers wait for, as long as the process lives.
type Waits interface {
	// Awake tells whether a waiting handler is to be called before its time: as the child is there that it waits for,
	// or that one of its sub-handlers does; as the change is not the one that it has begun to wait in; or as nothing is
	// known of its wait.
	Awake(owner types.UID, h *handlers.Handler, change string) bool
	// Called is told of each call that has ended: with a wait, or without, so that the handler waits for nothing.
	Called(owner types.UID, h *handlers.Handler, waits bool)
}

// wake makes a waiting handler due if it need not wait any more.
func (p *pass) wake(c *cause.Cause, h *handlers.Handler, state *execution.HandlerState) {
	waits := p.handling.Waits
	if waits == nil || waits.Awake(p.uid(), h, c.Fingerprint()) {
		state.Wake()
	}
}

// noteWait tells what has become of the waits of a handler.
func (p *pass) noteWait(a *execution.Attempt) {
	if !a.Outcome.Aborted || a.Outcome.Blocked {
		p.handling.Waits.Called(p.uid(), a.Call.Handler, a.Outcome.Awaited.Child != "")
	}
}

func (p *pass) uid() types.UID { return types.UID(patching.UIDOf(p.object.body)) }
