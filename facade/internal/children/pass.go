package children

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// pass is one run over the set of one handler and one parent. The caller holds the turn of the parent, see
// [memory.awaitTurn].
//
// A pass has three steps, whose order makes a crash harmless. First, new children are added to the record and written.
// Then all children are applied. Finally, undeclared children are deleted and leave the record, which is written with
// the outcome of the handler. So the record lists at least the children that exist.
type pass struct {
	keeper          *Keeper
	parent          Parent
	handler         DeclaringHandler
	recordName      string   // the annotation with the record
	formerNames     []string // the annotations under former ids
	storedRecord    childSet // the record in the annotation
	knownChildren   childSet // the record combined with the proofs; uids are proven or empty
	appliedChildren childSet // the applied children
	hasSharedChild  bool     // a dropped child stays, because another handler declares it

	proofs       map[string]childSet   // the children that this process has applied before, by record
	declarers    map[identity][]string // the records of other handlers that list a child; nil until needed
	lostChildren []declaredChild       // existing children that name this record but are not in it
}

// applyAndPrune applies the children. Wanted are the same children as entries for the record. If nothing fails, it then
// deletes the children that the handler declared before and that are not in the whole set. A nil whole set means that
// more may be declared later, so nothing is deleted.
func (p *pass) applyAndPrune(ctx context.Context, all []declaredChild, wanted, whole childSet) (err error) {
	if p.storedRecord, err = p.readWithFormer(p.parent.workingCopy()); err != nil {
		return err
	}
	listed, uid := p.storedRecord, uidOf(p.parent.workingCopy())
	p.proofs = p.keeper.memory.provenRecords(uid)
	// Uids from the record are replaced by proven ones: only these allow an apply without reading the object first.
	proven := p.proofs[p.recordName]
	p.knownChildren = p.storedRecord.withProofs(proven)
	// The record is written first. If the process died between the apply and the record, the child would be left
	// behind.
	if !p.storedRecord.containsAll(wanted) {
		if err := p.recordWanted(ctx, wanted); err != nil {
			return fmt.Errorf("remembering the children before they are applied: %w", err)
		}
	}
	applied, failed := p.applyAll(ctx, all, listed)
	p.appliedChildren = applied
	// Children that a lost record had listed can be pruned below.
	p.knownChildren = p.knownChildren.mergedWith(p.findLostChildren(ctx))
	after, pruned := p.storedRecord.mergedWith(p.knownChildren).mergedWith(applied), childSet(nil)
	// Applications are dropped before the deletion, so that it does not count as drift.
	if whole != nil {
		p.keeper.memory.keepDeclared(uid, p.recordName, whole)
		if failed == nil {
			pruned, failed = p.prune(ctx, p.knownChildren.without(whole))
			after = after.without(pruned)
		}
	}
	// The proofs are replaced even after a failure: each applied child is proven on its own.
	p.keeper.memory.replaceProof(uid, namespaceOf(p.parent.workingCopy()), p.recordName,
		proven.mergedWith(applied).without(pruned))
	return errors.Join(failed, p.updateRecord(ctx, after, pruned))
}

// readWithFormer reads the record of the handler and merges the records under its former ids.
func (p *pass) readWithFormer(body map[string]any) (childSet, error) {
	all, err := readRecord(body, p.recordName)
	for _, name := range p.formerNames {
		if err != nil {
			return nil, err
		}
		var former childSet
		former, err = readRecord(body, name)
		// The current record wins over the former one.
		all = former.mergedWith(all)
	}
	return all, err
}

// replaceRecords writes the record into the body, and removes the records of former ids.
func (p *pass) replaceRecords(body map[string]any, children childSet) error {
	for _, name := range p.formerNames {
		if err := writeRecord(body, p.keeper.Prefix, name, nil); err != nil {
			return err
		}
	}
	return writeRecord(body, p.keeper.Prefix, p.recordName, children)
}

// isRenamed reports whether the parent has a record under a former id, which must be moved even without other changes.
func (p *pass) isRenamed() bool {
	annotations, _ := storage.AnnotationsOf(p.parent.workingCopy())
	return slices.ContainsFunc(p.formerNames, func(name string) bool { return annotations[name] != nil })
}

// isOwnRecord reports whether the key is that of this record or of one under a former id.
func (p *pass) isOwnRecord(key string) bool {
	return key == p.recordKey(p.recordName) || slices.ContainsFunc(p.formerNames,
		func(name string) bool { return key == p.recordKey(name) })
}

// recordWanted writes the wanted children into the record before they are applied. If the parent cannot own one of
// them, it also adds the finalizer. Both are one write: the parent cannot be deleted between them.
func (p *pass) recordWanted(ctx context.Context, wanted childSet) error {
	finalizer := ""
	if len(wanted.notOwnable(namespaceOf(p.parent.workingCopy()))) > 0 {
		finalizer = p.keeper.Finalizer
	}
	// The transformation may run again on a newer body, so it reads the record from its argument.
	err := p.parent.Writes.AddTransform(func(body map[string]any) error {
		// Children that are declared now would be left behind. The API server also rejects new finalizers during a
		// deletion.
		if patching.IsBeingDeleted(body) {
			return ErrDeleting
		}
		kept, err := p.readWithFormer(body)
		if err != nil {
			return err
		}
		if finalizer != "" {
			if err := patching.BlockDeletion(finalizer)(body); err != nil {
				return err
			}
		}
		listed := kept.mergedWith(p.knownChildren).mergedWith(wanted)
		if err := p.replaceRecords(body, listed); err != nil {
			return err
		}
		// A record that exceeds the limit is an error before any child is applied.
		return checkFits(body, p.recordName, len(listed))
	})
	if err != nil {
		return err
	}
	p.knownChildren = p.knownChildren.mergedWith(wanted)
	p.storedRecord = p.storedRecord.mergedWith(p.knownChildren)
	// The write must not wait for the end of the handler.
	return p.parent.Writes.Flush(ctx)
}

// updateRecord updates the record after the pass. It is usually written with the outcome of the handler. Until then,
// the record lists more children than exist, which is harmless. Background handlers may run forever, so their record is
// written now.
func (p *pass) updateRecord(ctx context.Context, after, gone childSet) error {
	// Without a difference, nothing is written.
	if !p.isRenamed() && (maps.Equal(after, p.storedRecord) || p.isRecordCurrent(after)) {
		return nil
	}
	err := p.parent.Writes.AddTransform(func(body map[string]any) error {
		kept, err := p.readWithFormer(body)
		if err != nil {
			return err
		}
		return p.replaceRecords(body, kept.mergedWith(after).without(gone))
	})
	// A shared child must leave this record soon: the other handler deletes it only if this record does not list it.
	if err == nil && (p.handler.Background || p.hasSharedChild) {
		err = p.parent.Writes.Flush(ctx)
	}
	if err != nil {
		return fmt.Errorf("remembering the children: %w", err)
	}
	return nil
}

// isRecordCurrent reports whether the record on the parent already has exactly the text for these children. A packed
// record has no uids, so it can be current although the sets differ.
func (p *pass) isRecordCurrent(children childSet) bool {
	annotations, err := storage.AnnotationsOf(p.parent.workingCopy())
	if err != nil {
		return false
	}
	text, err := storedForm(uidOf(p.parent.workingCopy()), children)
	return err == nil && text == annotations[p.recordName]
}

// applyAll applies the children one by one, in the order of providers first. It returns the entries of the applied
// children, and the joined errors of the others. Listed is the record before this pass.
func (p *pass) applyAll(ctx context.Context, all []declaredChild, listed childSet) (childSet, error) {
	applied, providers := childSet{}, p.keeper.providersOf(p.parent.workingCopy(), all)
	var failed []error
	for _, child := range all {
		uid := uidOf(p.parent.workingCopy())
		seen := p.keeper.memory.dropApplied(uid, p.recordName, child.identity)
		p.nameRecords(child)
		made, err := p.applyByRules(ctx, child, seen)
		if err != nil {
			if seen != nil && child.rules.UntilDone {
				// The next attempt must still see that the child was deleted before it was done.
				p.keeper.memory.addApplied(uid, p.recordName, seen)
			}
			failed = append(failed, child.childError(providers.retryIfAwaited(child, err)))
			continue
		}
		// The child names this record, but the record does not list it: the record has lost entries.
		if _, ok := listed[child.identity]; !ok && p.isOwnRecord(made.formerRecords) {
			p.lostChildren = append(p.lostChildren, child)
		}
		applied[child.identity] = made.recordEntry(child)
		p.noteApplied(child, made, seen)
	}
	return applied, errors.Join(failed...)
}

// noteApplied stores the application of a child of a watched kind, to repair the child while it is not done. Seen is
// the former application.
//
// An apply of an unchanged declaration has usually written nothing. Its response can contain the edits of other
// clients, and the events of these must reach the handlers. So such a response does not count as an own write. If the
// apply did write, the handlers get one additional event.
func (p *pass) noteApplied(child declaredChild, made childResult, seen *appliedChild) {
	kind := child.object.GroupVersionKind().GroupKind()
	if made.object == nil || !p.keeper.isWatched(kind) {
		return
	}
	if made.run.outcome == "" {
		p.keeper.memory.addApplied(uidOf(p.parent.workingCopy()), p.recordName, newAppliedChild(child, made.object))
	}
	// Without a former application, only the uid shows whether the child existed already.
	isSame := made.object.GetUID() == p.knownChildren[child.identity].uid &&
		(seen == nil || equality.Semantic.DeepEqual(seen.child.object.Object, child.object.Object))
	p.keeper.memory.noteWrite(made.object, !isSame)
}

// prune deletes the children that are no longer declared, and returns the ones to remove from the record. Children that
// other handlers declare as well are not deleted, but they leave this record.
func (p *pass) prune(ctx context.Context, dropped childSet) (childSet, error) {
	if len(dropped) == 0 {
		return nil, nil
	}
	// If a record of another handler cannot be read, nothing is deleted.
	elsewhere, err := p.otherDeclarers()
	if err != nil {
		return nil, err
	}
	gone, rest := childSet{}, childSet{}
	for child, known := range dropped {
		if _, kept := elsewhere[child]; kept {
			p.hasSharedChild, gone[child] = true, known
		} else {
			rest[child] = known
		}
	}
	// Many entries that are not our children are found with one list request. They leave the record without a deletion.
	strangers := p.keeper.findStrangers(ctx, p.parent.NewestState(), rest)
	gone = gone.mergedWith(strangers)
	var failed []error
	for _, child := range rest.without(strangers).sortedIdentities() {
		if err := p.keeper.deleteListed(ctx, p.parent.NewestState(), child, rest[child]); err != nil {
			failed = append(failed, err)
			// A child that could not be deleted stays in the record, and the next pass tries again.
			continue
		}
		gone[child] = rest[child]
	}
	return gone, errors.Join(failed...)
}

// otherDeclarers returns the records of the other handlers that list a child, by child. The result is computed once per
// pass.
//
// Records of change handlers can have unsaved changes, which only the working copy contains. Records of background
// handlers are written at once, so the newest state of the parent can be newer than the working copy. The proofs are
// included: a client that removes the record of another handler must not make this handler delete its children.
func (p *pass) otherDeclarers() (map[identity][]string, error) {
	if p.declarers != nil {
		return p.declarers, nil
	}
	others := func(inBackground bool) func(string) bool {
		return func(name string) bool {
			is, background := isRecord(p.keeper.Prefix, name)
			return is && background == inBackground
		}
	}
	// The working copy has the records of change handlers, even unsaved ones.
	changes, err := readRecords(p.parent.workingCopy(), others(false))
	if err != nil {
		return nil, err
	}
	runs, err := readRecords(p.parent.NewestState(), others(true))
	if err != nil {
		return nil, err
	}
	// A child can be listed by several records, and its annotation names all of them.
	p.declarers = map[identity][]string{}
	for _, records := range []map[string]childSet{changes, runs, p.proofs} {
		for name, children := range records {
			for child := range children {
				if !p.isOwnRecord(p.recordKey(name)) && !slices.Contains(p.declarers[child], name) {
					p.declarers[child] = append(p.declarers[child], name)
				}
			}
		}
	}
	return p.declarers, nil
}
