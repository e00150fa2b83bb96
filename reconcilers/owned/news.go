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

// news is what a handler is to be told.
type news struct {
	child   *child
	uid     types.UID
	kind    string // of what happened
	version string
	object  *compact.Object
	account execution.Account

	identity *unstructured.Unstructured // if it is undecided whether the object is a child
}

// pending returns what a handler does not know yet of the children of an owner, in the order of their names.
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
		case owns, one.gone: // the handler has known what is gone
			all = append(all, item)
		case perhaps:
			item.identity = one.identity()
			undecided = append(undecided, item)
		}
	}
	c.mu.Unlock()
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

// unknown is what the handler does not know yet of a child, if it is for that kind.
func (c *Children) unknown(uid types.UID, one *child, h *handlers.Handler) (news, bool) {
	if !one.source.has(h.Owned) {
		return news{}, false
	}
	item, unknown := c.news(uid, one, one.told[h.ID])
	if !unknown && !one.gone {
		one.knownTo(h).version = item.version // what we wrote ourselves is known
	}
	return item, unknown
}

// news compares a child with what is known of it.
func (c *Children) news(uid types.UID, one *child, known *told) (news, bool) {
	item := news{child: one, uid: uid, version: one.object.GetResourceVersion(), object: one.object, kind: Modified}
	before := ""
	if known != nil {
		before, item.account = known.version, known.account
	}
	switch {
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

// retry notes an attempt that is to be followed by another one.
func (c *Children) retry(h *handlers.Handler, one news, outcome execution.Outcome) execution.Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := one.child.knownTo(h)
	known.account = retried(known.account, outcome, now())
	return known.account
}

// begin keeps the child in memory until end, so that a deletion during the call is reported after it.
func (c *Children) begin(h *handlers.Handler, one news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.child.knownTo(h).calling = true
}

// end removes a child that is gone, if no handler has finished a call for it.
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

// told notes that the handler knows it.
func (c *Children) told(of types.UID, h *handlers.Handler, one news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*one.child.knownTo(h) = told{version: one.version}
	if one.kind == Deleted {
		c.forget(of, h, one)
	}
}

// forget removes what the handler knows of a child; and the child, if it is gone and no handler knows it.
func (c *Children) forget(of types.UID, h *handlers.Handler, one news) {
	delete(one.child.told, h.ID)
	known := c.owners[of]
	if len(one.child.told) > 0 || known == nil || known.children[one.uid] != one.child {
		return
	}
	if one.child.gone { // it may be back since the handler was called
		delete(known.children, one.uid)
		c.tidy(of, known)
	}
}

func (c *child) knownTo(h *handlers.Handler) *told {
	if c.told == nil {
		c.told = map[string]*told{}
	}
	if c.told[h.ID] == nil {
		c.told[h.ID] = &told{}
	}
	return c.told[h.ID]
}
