package children

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// pass is one piece of work on the set of one handler.
type pass struct {
	keeper  *Keeper
	parent  Parent
	handler Handler
	name    string   // of the annotation
	former  []string // the annotations under former ids
	stored  set      // the record in the annotation
	known   set      // the same and what this process has applied: the uids are those that it has proven
	present set      // the applied children
	shared  bool     // another handler must delete the children that this one dropped

	proofs    map[string]set        // what this process has applied before, for all handlers
	declarers map[identity][]string // the records of the other handlers by their children, when needed
	missing   []declared            // children that are there, and that the annotation should have listed
}

// run applies the children, which are wanted; then, if nothing has failed, those that the handler has declared before
// and that are not in the whole set are deleted. Without a whole set, more is to be declared.
func (p *pass) run(ctx context.Context, all []declared, wanted, whole set) (err error) {
	if p.stored, err = p.recorded(p.parent.own()); err != nil {
		return err
	}
	listed, uid := p.stored, uidOf(p.parent.own())
	p.proofs = p.keeper.memory.proven(uid)
	proven := p.proofs[p.name]
	p.known = p.stored.proven(proven)
	// A child of which nothing is remembered would be lost if this process died.
	if !p.stored.has(wanted) {
		if err := p.announce(ctx, wanted); err != nil {
			return fmt.Errorf("remembering the children before they are applied: %w", err)
		}
	}
	applied, failed := p.applyAll(ctx, all, listed)
	p.present = applied
	p.known = p.known.with(p.rebuild(ctx))
	after, pruned := p.stored.with(p.known).with(applied), set(nil)
	if whole != nil {
		p.keeper.memory.keepDeclared(uid, p.name, whole)
		if failed == nil {
			pruned, failed = p.prune(ctx, p.known.without(whole))
			after = after.without(pruned)
		}
	}
	p.keeper.memory.prove(uid, namespaceOf(p.parent.own()), p.name, proven.with(applied).without(pruned))
	return errors.Join(failed, p.conclude(ctx, after, pruned))
}

// recorded reads the record, with the children under former ids.
func (p *pass) recorded(body map[string]any) (set, error) {
	all, err := recorded(body, p.name)
	for _, name := range p.former {
		if err != nil {
			return nil, err
		}
		var former set
		former, err = recorded(body, name)
		all = former.with(all)
	}
	return all, err
}

// store writes the record, and removes those of former ids.
func (p *pass) store(body map[string]any, children set) error {
	for _, name := range p.former {
		if err := store(body, p.keeper.Prefix, name, nil); err != nil {
			return err
		}
	}
	return store(body, p.keeper.Prefix, p.name, children)
}

// isRenamed is true if the parent has a record of a former id.
func (p *pass) isRenamed() bool {
	annotations, _ := storage.Annotations(p.parent.own())
	return slices.ContainsFunc(p.former, func(name string) bool { return annotations[name] != nil })
}

// isOwn is true for the key of the record, and those of former ids.
func (p *pass) isOwn(key string) bool {
	return key == p.key(p.name) || slices.ContainsFunc(p.former, func(name string) bool { return key == p.key(name) })
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
		kept, err := p.recorded(body)
		if err != nil {
			return err
		}
		if finalizer != "" {
			if err := patching.BlockDeletion(finalizer)(body); err != nil {
				return err
			}
		}
		listed := kept.with(p.known).with(wanted)
		if err := p.store(body, listed); err != nil {
			return err
		}
		return checkFits(body, p.name, len(listed))
	})
	if err != nil {
		return err
	}
	p.known = p.known.with(wanted)
	p.stored = p.stored.with(p.known)
	return p.parent.Writes.Flush(ctx)
}

// conclude remembers what there is after all. It is written with the outcome of the handler: until then, more is
// remembered than there is, which does no harm. But a handler in the background may have no end.
func (p *pass) conclude(ctx context.Context, after, gone set) error {
	if !p.isRenamed() && (after.equal(p.stored) || p.isStored(after)) {
		return nil
	}
	err := p.parent.Writes.Remember(func(body map[string]any) error {
		kept, err := p.recorded(body)
		if err != nil {
			return err
		}
		return p.store(body, kept.with(after).without(gone))
	})
	if err == nil && (p.handler.Background || p.shared) {
		err = p.parent.Writes.Flush(ctx)
	}
	if err != nil {
		return fmt.Errorf("remembering the children: %w", err)
	}
	return nil
}

// isStored is true if the record is packed, and has all that it would have of these children.
func (p *pass) isStored(children set) bool {
	annotations, err := storage.Annotations(p.parent.own())
	if err != nil {
		return false
	}
	text, err := storedForm(uidOf(p.parent.own()), children)
	return err == nil && text == annotations[p.name]
}

// applyAll returns what was applied, with the uids, and the errors of the rest. Listed is what the annotation had
// before.
func (p *pass) applyAll(ctx context.Context, all []declared, listed set) (set, error) {
	applied, providers := set{}, p.keeper.providers(p.parent.own(), all)
	var failed []error
	for _, child := range all {
		uid := uidOf(p.parent.own())
		seen := p.keeper.memory.dropApplied(uid, p.name, child.identity)
		p.nameRecords(child)
		made, err := p.make(ctx, child, seen)
		if err != nil {
			if seen != nil && child.rules.UntilDone {
				// Whether the child was deleted before it was done must stay known.
				p.keeper.memory.addApplied(uid, p.name, seen)
			}
			failed = append(failed, child.failure(providers.awaited(child, err)))
			continue
		}
		if _, ok := listed[child.identity]; !ok && p.isOwn(made.former) {
			p.missing = append(p.missing, child)
		}
		applied[child.identity] = made.entry(child)
		p.noteApplied(child, made, seen)
	}
	return applied, errors.Join(failed...)
}

// noteApplied notes a child that this process has applied, to repair it as long as it is not done. Seen is the former
// application.
//
// An apply of an unchanged declaration has usually written nothing, and its answer may have the edits of others: their
// events must reach the handlers. If it has written, handlers see one event more.
func (p *pass) noteApplied(child declared, made result, seen *application) {
	kind := child.object.GroupVersionKind().GroupKind()
	if made.object == nil || !p.keeper.isWatched(kind) {
		return
	}
	if made.run.outcome == "" {
		p.keeper.memory.addApplied(uidOf(p.parent.own()), p.name, newApplication(child, made.object))
	}
	isSame := made.object.GetUID() == p.known[child.identity].uid &&
		(seen == nil || equality.Semantic.DeepEqual(seen.child.object.Object, child.object.Object))
	p.keeper.memory.noteWrite(made.object, !isSame)
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
	gone, rest := set{}, set{}
	for child, known := range dropped {
		if _, kept := elsewhere[child]; kept {
			p.shared, gone[child] = true, known
		} else {
			rest[child] = known
		}
	}
	strangers := p.keeper.strangers(ctx, p.parent.Newest(), rest)
	gone = gone.with(strangers)
	var failed []error
	for _, child := range rest.without(strangers).sorted() {
		if err := p.keeper.remove(ctx, p.parent.Newest(), child, rest[child]); err != nil {
			failed = append(failed, err)
			continue
		}
		gone[child] = rest[child]
	}
	return gone, errors.Join(failed...)
}

// elsewhere returns the records of the other handlers by their children. What those of changes remember may not be
// written yet; what those in the background do is, and may be newer than the object of the handler. A record that was
// removed from the object does not make the children of its handler ours.
func (p *pass) elsewhere() (map[identity][]string, error) {
	if p.declarers != nil {
		return p.declarers, nil
	}
	others := func(inBackground bool) func(string) bool {
		return func(name string) bool {
			is, background := isRecord(p.keeper.Prefix, name)
			return is && background == inBackground
		}
	}
	changes, err := recordsOf(p.parent.own(), others(false))
	if err != nil {
		return nil, err
	}
	runs, err := recordsOf(p.parent.Newest(), others(true))
	if err != nil {
		return nil, err
	}
	p.declarers = map[identity][]string{}
	for _, records := range []map[string]set{changes, runs, p.proofs} {
		for name, children := range records {
			for child := range children {
				if !p.isOwn(p.key(name)) && !slices.Contains(p.declarers[child], name) {
					p.declarers[child] = append(p.declarers[child], name)
				}
			}
		}
	}
	return p.declarers, nil
}
