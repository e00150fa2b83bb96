package children

import (
	"context"
	"errors"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// pass is one piece of work on the set of one handler.
type pass struct {
	keeper  *Keeper
	parent  Parent
	handler Handler
	name    string // of the annotation
	known   set    // what is remembered by now
	present set    // what was applied
	shared  bool   // somebody else is to delete what we have dropped, and must know that
}

// run applies the children, which are wanted; then, if nothing has failed, those that the handler has declared before
// and that are not in the whole set are deleted. Without a whole set, more is to be declared.
func (p *pass) run(ctx context.Context, all []declared, wanted, whole set) (err error) {
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
	p.present = applied
	after := before.with(applied)
	if whole != nil {
		p.keeper.applied.keep(uidOf(p.parent.own()), p.name, whole)
		if failed == nil {
			var pruned set
			pruned, failed = p.prune(ctx, before.without(whole))
			after = after.without(pruned)
		}
	}
	return errors.Join(failed, p.conclude(ctx, before, after))
}

// announce writes the children that may be there from now on; a parent of such that it cannot own is held from now on.
func (p *pass) announce(ctx context.Context, wanted set) error {
	finalizer := ""
	if len(wanted.held(namespaceOf(p.parent.own()))) > 0 {
		finalizer = p.keeper.Finalizer
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
		return store(body, p.keeper.Prefix, p.name, kept.with(wanted))
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
		return store(body, p.keeper.Prefix, p.name, kept.with(after).without(gone))
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
	applied := set{}
	var failed []error
	for _, child := range all {
		p.keeper.applied.drop(uidOf(p.parent.own()), p.name, child.identity)
		made, err := p.keeper.apply(ctx, p.parent.Newest(), child, p.known[child.identity].uid)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s, %s: %w", child.place, child.identity, err))
			continue
		}
		applied[child.identity] = entry{child.object.GroupVersionKind().Version, made.GetUID()}
		if p.keeper.Watched != nil && p.keeper.Watched(child.object.GroupVersionKind().GroupKind()) {
			p.keeper.applied.add(uidOf(p.parent.own()), p.name, newApplication(child, made))
			p.keeper.applied.wrote(made)
		}
	}
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
		} else if err := p.keeper.remove(ctx, p.parent.Newest(), child, dropped[child].version); err != nil {
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
			is, background := isRecord(p.keeper.Prefix, name)
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
