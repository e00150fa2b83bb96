package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

var errEnded = errors.New("the handler has returned: children must be declared before that")

// Declaration collects the children that one call of a handler declares in several steps. The whole set is known only
// when the call has ended. The handler's goroutines may share it.
type Declaration struct {
	keeper  *Keeper
	parent  Parent
	handler DeclaringHandler

	// mu guards the fields below. It is not held during requests.
	mu                sync.Mutex
	hasEnded          bool
	declaredChildren  childSet
	contents          map[identity]fingerprint // of the wanted children
	unappliedChildren childSet                 // the wanted children that could not be applied
	isIncomplete      bool                     // some declaration was invalid, so the set is incomplete
}

// NewDeclaration starts the declaration for one call of a handler. The set is empty at first: if the handler declares
// nothing, [Declaration.EndCall] deletes its former children.
func (k *Keeper) NewDeclaration(parent Parent, handler DeclaringHandler) *Declaration {
	return &Declaration{
		keeper: k, parent: parent, handler: handler,
		declaredChildren: childSet{}, contents: map[identity]fingerprint{}, unappliedChildren: childSet{},
	}
}

// Ensure applies these children in addition to the earlier ones, see [Keeper.Ensure]. Nothing is deleted before the end
// of the call, because later steps may declare more.
func (d *Declaration) Ensure(ctx context.Context, given []any) error {
	all, wanted, invalid := d.keeper.prepareChildren(ctx, d.parent, given)
	all, wanted, err := d.addChildren(all, wanted, invalid)
	// A partly invalid declaration still applies its valid children: they do not depend on the others.
	if err != nil && len(all) == 0 {
		return err
	}
	return errors.Join(err, d.keeper.runPass(ctx, d.parent, d.handler, func(p *pass) error {
		err := p.applyAndPrune(ctx, all, wanted, nil)
		d.notePresent(p.appliedChildren)
		return err
	}))
}

// addChildren adds the children to the wanted set and counts them as absent until they are applied. It returns the
// children to apply: those that no earlier step has declared with another content.
func (d *Declaration) addChildren(
	all []declaredChild, wanted childSet, invalid error,
) ([]declaredChild, childSet, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A goroutine of the handler can outlive the call.
	if d.hasEnded {
		return nil, nil, errEnded
	}
	var failed []error
	all = slices.DeleteFunc(all, func(child declaredChild) bool {
		// The same content again is allowed, so that helpers of a handler can share a child.
		before, twice := d.contents[child.identity]
		if twice = twice && before != child.content; twice {
			failed = append(failed, fmt.Errorf("%s is %s, which an earlier call of Ensure has declared otherwise: "+
				"declare it once, or the same again", child.position, child.identity))
			delete(wanted, child.identity)
		}
		return twice
	})
	for _, child := range all {
		d.contents[child.identity] = child.content
	}
	d.declaredChildren, d.unappliedChildren = d.declaredChildren.mergedWith(wanted),
		d.unappliedChildren.mergedWith(wanted)
	err := errors.Join(append([]error{invalid}, failed...)...)
	// An error stays, even if the handler ignores it: [Declaration.EndCall] must not delete anything then.
	d.isIncomplete = d.isIncomplete || err != nil
	return all, wanted, err
}

// notePresent removes the children that exist from the absent ones.
func (d *Declaration) notePresent(present childSet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unappliedChildren = d.unappliedChildren.without(present)
}

// EndCall ends the call after it has succeeded. It deletes the children that the handler declared in an earlier call
// and not in this one. It deletes nothing if a declared child is invalid or could not be applied, because the set may
// then be incomplete.
func (d *Declaration) EndCall(ctx context.Context) error {
	d.mu.Lock()
	// The flag is set before the set is read, so that a later Ensure fails instead of being ignored.
	d.hasEnded = true
	wanted, complete := d.declaredChildren, !d.isIncomplete && len(d.unappliedChildren) == 0
	d.mu.Unlock()
	err := d.keeper.runPass(ctx, d.parent, d.handler, func(p *pass) error {
		if !complete {
			return p.logUndeclared(ctx, wanted)
		}
		return p.applyAndPrune(ctx, nil, nil, wanted)
	})
	if errors.Is(err, ErrDeleting) { // the garbage collector or Release deletes all of them
		return nil
	}
	return err
}

// logUndeclared logs the children that are no longer declared and that stay because Ensure has failed. The handler may
// have ignored that failure.
func (p *pass) logUndeclared(ctx context.Context, wanted childSet) error {
	known, err := p.readWithFormer(p.parent.workingCopy())
	if err != nil {
		return err
	}
	for _, child := range known.without(wanted).sortedIdentities() {
		logf.FromContext(ctx).Info("Leaving a child that is not declared any more, as Ensure has failed",
			"child", child.String())
	}
	return nil
}

// computeDigests computes the digests of the handler's declaration, before labels and references of the parent are
// added: the parent's labels can change between two calls. For a child with Once, all declarations count as equal,
// because an existing child is never updated.
func (d *declaredChild) computeDigests() {
	object := d.object.Object
	// This digest is stored in the record, to compare it with later declarations even after a restart.
	if d.rules.UntilDone {
		d.digest = digestOf(object)
	}
	if d.rules.Once {
		object = nil
	}
	d.content = fingerprintOfJSON(map[string]any{"object": object, "rules": d.rules})
}
