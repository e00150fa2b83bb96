package children

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// ErrDeleting says that nothing can be declared for a parent any more.
var ErrDeleting = errors.New("the object is being deleted, and its children with it: Ensure is for objects that stay")

// Keeper keeps the children of all parents of one operator. The fields must not change once it is used.
type Keeper struct {
	// Client applies and deletes children, as the operator; Live reads what the API server has.
	Client client.Client
	Live   client.Reader
	// Prefix is that of the annotations and labels; Finalizer holds parents of children that they cannot own.
	Prefix, Finalizer string

	// Owned are the children that are watched; nil is none. Watched tells which kinds are.
	Owned   *owned.Children
	Watched func(kind schema.GroupKind) bool
	// Repaired is told of a child that was not as it was declared; nil is not.
	Repaired func(parent, child string)

	turns   turns
	applied applications
}

// Handler is who declares children: each has a set of its own for each parent.
type Handler struct {
	ID string
	// Background tells those beside the changes, such as daemons, from handlers of changes of the same id.
	Background bool
}

// Parent is an object whose children are declared, as a handler has it.
type Parent struct {
	// Newest gives the newest state of the object that is known. It is shared.
	Newest func() map[string]any
	// Own is the object with what the handler has remembered for it; nil is the newest state.
	Own map[string]any
	// Writes changes the object.
	Writes handlers.Writes
}

func (p Parent) own() map[string]any {
	if p.Own != nil {
		return p.Own
	}
	return p.Newest()
}

// Ensure makes the children those that the handler has for the parent: it applies them, and deletes those that the
// handler has declared before and that are not among them. What has changed on the parent is remembered, but where it
// must be known before a child is touched: that is written.
//
// If any child fails, the others are applied, and none is deleted.
func (k *Keeper) Ensure(ctx context.Context, parent Parent, handler Handler, given []any) error {
	all, err := declare(k.Client.Scheme(), given)
	if err != nil {
		return err
	}
	body := parent.Newest()
	wanted, err := k.mark(body, all)
	if err != nil {
		return err
	}
	leave, err := k.turns.enter(ctx, uidOf(body))
	if err != nil {
		return err
	}
	defer leave()
	if patching.BeingDeleted(parent.Newest()) {
		return ErrDeleting
	}
	work := &pass{Keeper: k, parent: parent, name: nameOf(k.Prefix, body, handler), handler: handler}
	return work.run(ctx, all, wanted)
}

// pass is one call of Ensure.
type pass struct {
	*Keeper

	parent  Parent
	handler Handler
	name    string // of the annotation
	known   set    // what is remembered by now
	shared  bool   // somebody else is to delete what we have dropped, and must know that
}

func (p *pass) run(ctx context.Context, all []declared, wanted set) (err error) {
	if p.known, err = recorded(p.parent.own(), p.name); err != nil {
		return err
	}
	// A child of which nothing is remembered would be lost if this process died.
	if !p.known.has(wanted) {
		if err := p.announce(ctx, wanted); err != nil {
			return fmt.Errorf("remembering the children before they are applied: %w", err)
		}
	}
	before := p.known
	applied, failed := p.applyAll(ctx, all)
	after := before.with(applied)
	if failed == nil {
		var pruned set
		pruned, failed = p.prune(ctx, before.without(wanted))
		after = after.without(pruned)
	}
	return errors.Join(failed, p.conclude(ctx, before, after))
}

// announce writes the children that may be there from now on; a parent of such that it cannot own is held from now on.
func (p *pass) announce(ctx context.Context, wanted set) error {
	finalizer := ""
	if len(wanted.held(namespaceOf(p.parent.own()))) > 0 {
		finalizer = p.Finalizer
	}
	err := p.parent.Writes.Remember(func(body map[string]any) error {
		if patching.BeingDeleted(body) {
			return ErrDeleting
		}
		kept, err := recorded(body, p.name)
		if err != nil {
			return err
		}
		if finalizer != "" {
			if err := patching.BlockDeletion(finalizer)(body); err != nil {
				return err
			}
		}
		return store(body, p.Prefix, p.name, kept.with(wanted))
	})
	if err != nil {
		return err
	}
	p.known = p.known.with(wanted)
	return p.parent.Writes.Flush(ctx)
}

// conclude remembers what there is after all. It is written with the outcome of the handler: until then, more is
// remembered than there is, which does no harm. But a handler in the background may have no end.
func (p *pass) conclude(ctx context.Context, before, after set) error {
	if after.equal(before) {
		return nil
	}
	gone := before.without(after)
	err := p.parent.Writes.Remember(func(body map[string]any) error {
		kept, err := recorded(body, p.name)
		if err != nil {
			return err
		}
		return store(body, p.Prefix, p.name, kept.with(after).without(gone))
	})
	if err == nil && (p.handler.Background || p.shared) {
		err = p.parent.Writes.Flush(ctx)
	}
	if err != nil {
		return fmt.Errorf("remembering the children: %w", err)
	}
	return nil
}

// applyAll gives what was applied, with the uids, and the errors of the rest.
func (p *pass) applyAll(ctx context.Context, all []declared) (set, error) {
	applied, noted := set{}, map[identity]*application{}
	var failed []error
	for _, child := range all {
		made, err := p.apply(ctx, p.parent.Newest(), child, p.known[child.identity].uid)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s, %s: %w", child.place, child.identity, err))
			continue
		}
		applied[child.identity] = entry{child.object.GroupVersionKind().Version, made.GetUID()}
		if p.Watched != nil && p.Watched(child.object.GroupVersionKind().GroupKind()) {
			noted[child.identity] = newApplication(child, made)
			p.applied.wrote(made)
		}
	}
	p.applied.replace(p.parent.own(), p.name, noted)
	return applied, errors.Join(failed...)
}

// prune deletes what is not declared any more, and gives what is gone: all but what other handlers have declared as
// well, which they keep.
func (p *pass) prune(ctx context.Context, dropped set) (set, error) {
	if len(dropped) == 0 {
		return nil, nil
	}
	elsewhere, err := p.elsewhere()
	if err != nil {
		return nil, err
	}
	gone := set{}
	var failed []error
	for _, child := range dropped.sorted() {
		if _, kept := elsewhere[child]; kept {
			p.shared = true
		} else if err := p.remove(ctx, p.parent.Newest(), child, dropped[child].version); err != nil {
			failed = append(failed, err)
			continue
		}
		gone[child] = dropped[child]
	}
	return gone, errors.Join(failed...)
}

// elsewhere is what the other handlers have declared. What those of changes remember may not be written yet; what those
// in the background do is, and may be newer than the object of the handler.
func (p *pass) elsewhere() (set, error) {
	others := func(inBackground bool) func(string) bool {
		return func(name string) bool {
			is, background := isRecord(p.Prefix, name)
			return is && background == inBackground && name != p.name
		}
	}
	changes, err := recordedAll(p.parent.own(), others(false))
	if err != nil {
		return nil, err
	}
	runs, err := recordedAll(p.parent.Newest(), others(true))
	return changes.with(runs), err
}

// Release deletes all children that the object has declared and cannot own: it is being deleted.
func (k *Keeper) Release(ctx context.Context, body map[string]any) error {
	leave, err := k.turns.enter(ctx, uidOf(body))
	if err != nil {
		return err
	}
	defer leave()
	all, err := recordedAll(body, k.isRecord)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Leaving children of a deleted object, as they are not known")
		return nil
	}
	held := all.held(namespaceOf(body))
	var failed []error
	for _, child := range held.sorted() {
		failed = append(failed, k.remove(ctx, body, child, held[child].version))
	}
	return errors.Join(failed...)
}

// Held tells whether the object has declared children that it cannot own.
func (k *Keeper) Held(body map[string]any) bool {
	all, err := recordedAll(body, k.isRecord)
	return err == nil && len(all.held(namespaceOf(body))) > 0
}

func (k *Keeper) isRecord(name string) bool {
	is, _ := isRecord(k.Prefix, name)
	return is
}

func namespaceOf(body map[string]any) string {
	return (&unstructured.Unstructured{Object: body}).GetNamespace()
}
