package owned

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// pendingChild is one child with a change that a handler has not handled.
type pendingChild struct {
	child     *child
	uid       types.UID
	eventType string                // one of the types of events, such as [Added]
	version   string                // of the object, to be stored when the call has finished
	object    *compact.CachedObject // the state at this time; the child's own can change during the call
	account   execution.Account     // of the former attempts for this change

	identity *unstructured.Unstructured // set if it is undecided whether the object is a child
}

// pendingChildren returns the children of an owner with changes that the handler has not handled, sorted by namespace
// and name.
func (c *Children) pendingChildren(owner map[string]any, h *handlers.Handler) (all []pendingChild) {
	var undecided []pendingChild
	c.mu.Lock()
	of := types.UID(patching.ObjectUID(owner))
	known := c.owners[of]
	if known == nil {
		c.mu.Unlock()
		return nil
	}
	for uid, one := range known.children {
		owns, perhaps := known.isOwnerOf(one)
		switch item, unknown := c.pendingFor(uid, one, h); {
		case !unknown:
		// A deleted object that the handler was called for was a child.
		case owns, one.gone:
			all = append(all, item)
		case perhaps:
			item.identity = one.identityObject()
			undecided = append(undecided, item)
		}
	}
	c.mu.Unlock()
	// Author takes locks and decodes records, so it is called without the lock.
	if len(undecided) > 0 {
		isDeclared := c.Author.DeclaredMatcher(of, owner)
		undecided = slices.DeleteFunc(undecided, func(item pendingChild) bool { return !isDeclared(item.identity) })
	}
	all = append(all, undecided...)
	slices.SortFunc(all, func(a, b pendingChild) int {
		return cmp.Or(strings.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
			strings.Compare(a.object.GetName(), b.object.GetName()))
	})
	return all
}

// pendingFor returns the unhandled change of a child, if the handler is registered for its kind. The caller holds the
// lock.
func (c *Children) pendingFor(uid types.UID, one *child, h *handlers.Handler) (pendingChild, bool) {
	if !one.source.servesHandler(h.ParentHandler) {
		return pendingChild{}, false
	}
	item, unknown := c.compareChild(uid, one, one.progressByID[h.ID])
	if !unknown && !one.gone {
		// An own write counts as handled. Later events are then changes, or the deletion, of a known child.
		one.progressOf(h).version = item.version
	}
	return item, unknown
}

// compareChild compares a child with the progress of a handler. It returns false if there is no unhandled change. The
// caller holds the lock.
func (c *Children) compareChild(uid types.UID, one *child, known *handlerProgress) (pendingChild, bool) {
	item := pendingChild{
		child: one, uid: uid, version: one.object.GetResourceVersion(), object: one.object, eventType: Modified,
	}
	before := ""
	if known != nil {
		before, item.account = known.version, known.account
	}
	switch {
	// The handler was never called for the child, so it is not called for the deletion.
	case one.gone && before == "":
		return item, false
	case one.gone:
		item.eventType = Deleted
	case before == item.version, c.Author.IsOwnWrite(uid, item.version):
		return item, false
	case before == "" && one.listed:
		item.eventType = Listed
	case before == "":
		item.eventType = Added
	}
	return item, true
}

// noteRetry records an attempt that another one must follow, and returns the account with the time of that one.
func (c *Children) noteRetry(h *handlers.Handler, one pendingChild, outcome execution.Outcome) execution.Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := one.child.progressOf(h)
	known.account = accountAfter(known.account, outcome, currentTime())
	return known.account
}

// beginCall marks that a call runs. The child then stays in memory until [Children.endCall], so that a deletion during
// the call is reported afterwards.
func (c *Children) beginCall(h *handlers.Handler, one pendingChild) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.child.progressOf(h).calling = true
}

// endCall marks that the call has returned. It removes a deleted child if no call for it has finished.
func (c *Children) endCall(of types.UID, h *handlers.Handler, one pendingChild) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := one.child.progressByID[h.ID]
	if known == nil {
		return
	}
	known.calling = false
	if one.child.gone && known.version == "" {
		c.removeProgress(of, h, one)
	}
}

// noteHandled records that the handler has handled the change. The account is reset, so the next change has all its
// attempts.
func (c *Children) noteHandled(of types.UID, h *handlers.Handler, one pendingChild) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*one.child.progressOf(h) = handlerProgress{version: one.version}
	if one.eventType == Deleted {
		c.removeProgress(of, h, one)
	}
}

// removeProgress removes the progress of the handler with a child. It also removes the child if it is deleted and no
// other handler has progress. The caller holds the lock.
func (c *Children) removeProgress(of types.UID, h *handlers.Handler, one pendingChild) {
	delete(one.child.progressByID, h.ID)
	known := c.owners[of]
	if len(one.child.progressByID) > 0 || known == nil || known.children[one.uid] != one.child {
		return
	}
	// The child can have been created again during the call.
	if one.child.gone {
		delete(known.children, one.uid)
		c.removeEmptyOwner(of, known)
	}
}

// progressOf returns the progress of a handler, and creates it if necessary. The caller holds the lock.
func (c *child) progressOf(h *handlers.Handler) *handlerProgress {
	if c.progressByID == nil {
		c.progressByID = map[string]*handlerProgress{}
	}
	if c.progressByID[h.ID] == nil {
		c.progressByID[h.ID] = &handlerProgress{}
	}
	return c.progressByID[h.ID]
}
