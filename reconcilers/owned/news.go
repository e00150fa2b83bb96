package owned

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// news is one child with a change that a handler has not handled.
type news struct {
	child   *child
	uid     types.UID
	kind    string            // one of the types of events, such as [Added]
	version string            // of the object, to be stored when the call has finished
	object  *compact.Object   // the state at this time; the child's own can change during the call
	account execution.Account // of the former attempts for this change

	identity *unstructured.Unstructured // set if it is undecided whether the object is a child
}

// pending returns the children of an owner with changes that the handler has not handled, sorted by namespace and name.
func (c *Children) pending(owner map[string]any, h *handlers.Handler) (all []news) {
	var undecided []news
	c.mu.Lock()
	of := types.UID(patching.UIDOf(owner))
	known := c.owners[of]
	if known == nil {
		c.mu.Unlock()
		return nil
	}
	for uid, one := range known.children {
		owns, perhaps := known.owns(one)
		switch item, unknown := c.unknown(uid, one, h); {
		case !unknown:
		// A deleted object that the handler was called for was a child.
		case owns, one.gone:
			all = append(all, item)
		case perhaps:
			item.identity = one.identity()
			undecided = append(undecided, item)
		}
	}
	c.mu.Unlock()
	// Author takes locks and decodes records, so it is called without the lock.
	if len(undecided) > 0 {
		isDeclared := c.Author.Declared(of, owner)
		undecided = slices.DeleteFunc(undecided, func(item news) bool { return !isDeclared(item.identity) })
	}
	all = append(all, undecided...)
	slices.SortFunc(all, func(a, b news) int {
		return cmp.Or(strings.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
			strings.Compare(a.object.GetName(), b.object.GetName()))
	})
	return all
}

// unknown returns the unhandled change of a child, if the handler is registered for its kind. The caller holds the
// lock.
func (c *Children) unknown(uid types.UID, one *child, h *handlers.Handler) (news, bool) {
	if !one.source.has(h.Owned) {
		return news{}, false
	}
	item, unknown := c.news(uid, one, one.told[h.ID])
	if !unknown && !one.gone {
		// An own write counts as handled. Later events are then changes, or the deletion, of a known child.
		one.knownTo(h).version = item.version
	}
	return item, unknown
}

// news compares a child with the progress of a handler. It returns false if there is no unhandled change. The caller
// holds the lock.
func (c *Children) news(uid types.UID, one *child, known *told) (news, bool) {
	item := news{child: one, uid: uid, version: one.object.GetResourceVersion(), object: one.object, kind: Modified}
	before := ""
	if known != nil {
		before, item.account = known.version, known.account
	}
	switch {
	// The handler was never called for the child, so it is not called for the deletion.
	case one.gone && before == "":
		return item, false
	case one.gone:
		item.kind = Deleted
	case before == item.version, c.Author.Wrote(uid, item.version):
		return item, false
	case before == "" && one.listed:
		item.kind = Listed
	case before == "":
		item.kind = Added
	}
	return item, true
}

// retry records an attempt that another one must follow, and returns the account with the time of that one.
func (c *Children) retry(h *handlers.Handler, one news, outcome execution.Outcome) execution.Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := one.child.knownTo(h)
	known.account = retried(known.account, outcome, now())
	return known.account
}

// begin marks that a call runs. The child then stays in memory until [Children.end], so that a deletion during the call
// is reported afterwards.
func (c *Children) begin(h *handlers.Handler, one news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.child.knownTo(h).calling = true
}

// end marks that the call has returned. It removes a deleted child if no call for it has finished.
func (c *Children) end(of types.UID, h *handlers.Handler, one news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := one.child.told[h.ID]
	if known == nil {
		return
	}
	known.calling = false
	if one.child.gone && known.version == "" {
		c.forget(of, h, one)
	}
}

// told records that the handler has handled the change. The account is reset, so the next change has all its attempts.
func (c *Children) told(of types.UID, h *handlers.Handler, one news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*one.child.knownTo(h) = told{version: one.version}
	if one.kind == Deleted {
		c.forget(of, h, one)
	}
}

// forget removes the progress of the handler with a child. It also removes the child if it is deleted and no other
// handler has progress. The caller holds the lock.
func (c *Children) forget(of types.UID, h *handlers.Handler, one news) {
	delete(one.child.told, h.ID)
	known := c.owners[of]
	if len(one.child.told) > 0 || known == nil || known.children[one.uid] != one.child {
		return
	}
	// The child can have been created again during the call.
	if one.child.gone {
		delete(known.children, one.uid)
		c.tidy(of, known)
	}
}

// knownTo returns the progress of a handler, and creates it if necessary. The caller holds the lock.
func (c *child) knownTo(h *handlers.Handler) *told {
	if c.told == nil {
		c.told = map[string]*told{}
	}
	if c.told[h.ID] == nil {
		c.told[h.ID] = &told{}
	}
	return c.told[h.ID]
}
