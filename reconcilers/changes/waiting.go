package changes

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// Waits tracks the children that handlers wait for, in memory.
type Waits interface {
	// ShouldWake reports whether a waiting handler must be called before its time. That is so if the awaited child is
	// ready for the handler or for one of its sub-handlers, if the wait began in another change, or if the wait is not
	// known, as after a restart.
	ShouldWake(owner types.UID, h *handlers.Handler, change string) bool
	// NoteCall records a finished call, and whether the handler waits for a child now.
	NoteCall(owner types.UID, h *handlers.Handler, waits bool)
}

// wakeIfReady makes a waiting handler due if its wait has ended.
func (p *pass) wakeIfReady(c *cause.Cause, h *handlers.Handler, state *execution.HandlerState) {
	waits := p.handling.Waits
	// If waits are not tracked, only a call of the handler shows whether its wait has ended.
	if waits == nil || waits.ShouldWake(p.objectUID(), h, c.ChangeFingerprint()) {
		state.MarkAwake()
	}
}

// noteWait records whether the handler waits after this attempt. An aborted attempt changes nothing, unless the handler
// is blocked until the object changes.
func (p *pass) noteWait(a *execution.Attempt) {
	if !a.Outcome.Aborted || a.Outcome.Blocked {
		p.handling.Waits.NoteCall(p.objectUID(), a.Call.Handler, a.Outcome.Wait.Child != "")
	}
}

// objectUID returns the UID of the object.
func (p *pass) objectUID() types.UID { return types.UID(patching.ObjectUID(p.object.body)) }
