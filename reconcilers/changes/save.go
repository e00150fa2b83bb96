package changes

import (
	"context"
	"errors"
	"maps"
	"slices"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

var errNotKept = errors.New(
	"the API server took the write, but did not keep the stored progress or configuration: if it is in the status, the " +
		"CRD must allow that field, such as with x-kubernetes-preserve-unknown-fields",
)

// closeOrContinue writes what is left, and closes the cause if all handlers are finished.
func (p *pass) closeOrContinue(ctx context.Context) error {
	p.outcomes.ended = true
	err := p.save(ctx, p.outcomes)
	if err == nil && !p.object.gone && p.outcomes.isKept() {
		p.reportKept(ctx, p.outcomes)
	}
	if p.outcomes.state.Done() && !p.object.gone {
		p.memory.Initial = false
	}
	return err
}

// save writes the outcomes as they are now, with what the attempts remembered and their results. What cannot be written
// is kept in memory, so that the handlers are not called again for it.
func (p *pass) save(ctx context.Context, handled *outcomes) error {
	err := p.saveOnce(ctx, handled, true)
	if err != nil {
		err = p.settleRefusal(ctx, handled, err)
	}
	p.memory.unwritten = nil
	if err != nil {
		p.memory.unwritten = handled
	}
	return err
}

// settleRefusal writes the outcomes without the contents that were refused, if that is why they could not be written. A
// status that is refused for no handler's fault holds back nothing; and no failure of it, the finalizer.
func (p *pass) settleRefusal(ctx context.Context, handled *outcomes, err error) error {
	if !patching.ContentRefused(err) {
		return err
	}
	ofStatus := p.object.refusal != nil
	err = p.failRefused(ctx, handled, err)
	if ofStatus && (patching.ContentRefused(err) || handled.releases()) {
		err = nil
	}
	if err == nil && !p.object.gone {
		err = p.saveOnce(ctx, handled, false)
	}
	if patching.ContentRefused(err) && handled.releases() {
		err = p.releaseAlone(ctx, handled, err)
	}
	return err
}

// releaseAlone removes the finalizer and writes nothing else, if all that there is to write is refused.
func (p *pass) releaseAlone(ctx context.Context, handled *outcomes, refusal error) error {
	logf.FromContext(ctx).Error(
		refusal, "API server refused the last write of a deletion; removing the finalizer alone",
	)
	err := p.object.transform(ctx, patching.AllowDeletion(p.handling.Finalizer))
	if err == nil {
		handled.written()
	}
	return err
}

// saveOnce writes the outcomes, and what attempts that are still running remembered so far. If the status decides, its
// refusal comes before all else is written: it is to be found out whose it is.
func (p *pass) saveOnce(
	ctx context.Context, handled *outcomes, statusDecides bool, running ...*execution.Attempt,
) error {
	p.object.refusal = nil
	attempts := append(slices.Clip(handled.attempts), running...)
	patch := patching.Patch{Merge: map[string]any{}}
	written := make([]int, len(attempts))
	for i, a := range attempts {
		var err error
		if written[i], err = include(&patch, a); err != nil {
			return err
		}
	}
	// The patch removes only what the object has: that must be known.
	if err := p.object.refreshIfUncertain(ctx); err != nil || p.object.gone {
		return err
	}
	if err := p.compose(ctx, handled, &patch); err != nil {
		return err
	}
	told := handled.tells && p.addConditions(ctx, handled, &patch)
	if err := p.object.write(ctx, patch, statusDecides); err != nil || p.object.gone {
		return err
	}
	if told && p.object.refusal != nil { // what handlers have set in the status is to be judged without it
		handled.tells = false
		if err := p.saveOnce(ctx, handled, statusDecides, running...); err != nil {
			return err
		}
		return p.tellAlone(ctx, handled)
	}
	if err := p.object.refusal; err != nil && !patching.Hopeless(err) && !p.object.released {
		return err // the finalizer is gone, and others hold the object: the status is written later
	}
	p.logStatusRefusal(ctx, attempts)
	if len(p.object.restored) > 0 {
		p.logRestored(ctx, attempts)
	}
	if told {
		p.noteTold(ctx, handled)
	}
	for i, a := range attempts {
		a.Written(written[i])
	}
	if err := p.checkKept(handled, patch.Merge); err != nil {
		return err
	}
	if handled.leaves && !p.object.released {
		if err := p.takeBackOwnPatches(ctx, handled); err != nil || p.object.gone {
			return err
		}
	}
	if handled.working != nil || p.memory.ownWrites != nil {
		p.noteOwnWrite(handled)
	}
	handled.written()
	p.noteRemembered(handled)
	return nil
}

// noteRemembered keeps what the object remembers now, in case another client removes it.
func (p *pass) noteRemembered(handled *outcomes) {
	switch {
	case !handled.done():
		if handled.last != nil {
			p.noteFailed(handled)
		}
		p.memory.open = openRecords{p.handling, handled.state.StoredRecords()}
	case handled.last != nil:
		p.memory.open, p.memory.Handled.Hash = openRecords{}, cause.Hash(handled.last)
	default:
		p.memory.open = openRecords{}
	}
}

// include adds the changes and the result of the attempt to the patch, and returns the number of the changes.
func include(patch *patching.Patch, a *execution.Attempt) (int, error) {
	remembered := a.Remembered()
	patch.Transforms = append(patch.Transforms, patching.Contained(remembered)...)
	return len(remembered), patch.AddResult(a.Call.Handler.ID, a.Result(), a.Call.Handler.FormerIDs...)
}

// compose adds to the patch what the object is to remember.
func (p *pass) compose(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	if handled.done() {
		return p.composeEnd(ctx, handled, patch)
	}
	return p.composeProgress(ctx, handled, patch)
}

// composeEnd adds to the patch what ends a cause: no records, the new last-handled configuration, no finalizer of a
// deleted object.
func (p *pass) composeEnd(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	o, h, c := &p.object, p.handling, handled.cause
	if err := o.tolerate(ctx, handled.state.Purge(h.Progress, patch.Merge, o.kept)); err != nil {
		return err
	}
	if c.Deleting {
		if err := p.releaseDependents(ctx); err != nil {
			return err
		}
		patch.Transforms = append(patch.Transforms, patching.AllowDeletion(h.Finalizer))
	}
	last := handled.interim
	if last == nil {
		last = c.New
	}
	handled.agreed = diff.Equal(asValue(last), asValue(c.New))
	if handled.agreed && !c.Deleting && (handled.working != nil || h.KopfTexts) {
		last = p.withOwnPatches(ctx, handled, last)
	}
	handled.last = last
	// There is no essence at all if the deleted object has one that cannot be read.
	known := !handled.seen.lost && diff.Equal(asValue(c.Old), asValue(last))
	if last == nil || known || c.Deleting && !o.fits(patch, last) {
		if !patch.Empty() { // nothing is written for that alone
			h.Interim.Purge(patch, o.kept)
		}
		return nil
	}
	if err := o.bind(patch); err != nil {
		return err
	}
	if err := o.storeHandled(ctx, patch, last); err != nil {
		return err
	}
	if c.Deleting || handled.agreed {
		h.Interim.Purge(patch, o.kept)
		return nil
	}
	// Others have seen something else than the first. An update follows; and should the change be reverted before, it
	// has to follow all the same.
	return o.storeInterimBeside(patch, c.New)
}

// composeProgress adds what an unfinished cause needs: the records, and what the first successful handler saw.
func (p *pass) composeProgress(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	o, h := &p.object, p.handling
	handled.last = nil
	if handled.purging {
		err := handled.state.PurgePassive(h.Progress, patch.Merge, o.kept)
		if err := o.tolerate(ctx, err); err != nil {
			return err
		}
	}
	err := handled.state.Store(h.Progress, patch.Merge, o.kept)
	p.keepRecords(handled, err)
	if err := o.tolerate(ctx, err); err != nil {
		return err
	}
	tooMuch := storage.AnnotationsSize(annotationsOf(o.body), annotationsOf(patch.Merge)) > storage.AnnotationsLimit
	if handled.interim != nil && (tooMuch || !o.hasInterimOf(patch, handled)) {
		if err := o.storeInterimOf(patch, handled); err != nil {
			return err
		}
	}
	if len(patch.Merge) == 0 {
		return nil
	}
	if handled.interim == nil && handled.seen.staleInterim {
		h.Interim.Purge(patch, o.kept)
	}
	if err := p.composeLost(ctx, handled, patch); err != nil {
		return err
	}
	if err := p.composeFailed(ctx, handled, patch); err != nil {
		return err
	}
	return o.bind(patch)
}

// composeLost adds what another client has removed. The binding must not come back alone: without the records, handlers
// that are finished would be called again; without the last-handled configuration, the object would be a new one.
func (p *pass) composeLost(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	if p.object.recordsLost {
		if err := handled.state.StoreAgain(p.handling.Progress, patch.Merge, p.object.kept); err != nil {
			return err
		}
	}
	if handled.seen.lost && handled.cause.Old != nil {
		return p.object.storeHandled(ctx, patch, handled.cause.Old)
	}
	return nil
}

// keepRecords keeps the records of an object that is being deleted if they cannot be stored, or be read again: the
// deletion goes on, with its retries counted.
func (p *pass) keepRecords(handled *outcomes, failed error) {
	if !handled.cause.Deleting || failed == nil && !p.object.misread && p.memory.records == nil {
		return
	}
	if p.memory.records == nil {
		p.memory.records = map[string]progress.Record{}
	}
	maps.Copy(p.memory.records, handled.state.Records())
}

// settles tells whether nothing is to be done for the object as the round leaves it: all that was to be done for the
// state that the round has looked at is done, and what has become of that state by our own writes, or by others
// meanwhile, decides on nothing.
func (p *pass) settles() bool {
	o := &p.object
	switch {
	case p.exiting || p.rewrite > 0 || o.gone || o.released || patching.BeingDeleted(o.body) ||
		p.handling.Conditions != nil:
		return false // conditions may be tried again
	case p.outcomes != nil && !p.endsAll(p.outcomes):
		return false
	default:
		return o.looked == nil || p.handling.alike(o.looked, o.body, o.stored)
	}
}

// endsAll tells whether the cause is closed, and no handler thinks otherwise of the object for that.
func (p *pass) endsAll(handled *outcomes) bool {
	return handled.done() && handled.agreed && p.handling.Sight != requirements.SeesChange &&
		!slices.ContainsFunc(p.handling.Handlers, func(h *adapters.Handler) bool {
			return h.Description.Leaves(handled.cause)
		})
}

// alike tells whether the object is as it was before our writes, but for what they have stored for our own sake, and
// for what nobody decides by.
func (h *Handling) alike(before, now, stored map[string]any) bool {
	same := func(key string, then, now any) bool {
		switch key {
		case "metadata":
			return h.alikeMetadata(then, now, stored)
		case "status":
			return h.Sight == requirements.SeesEssence || diff.Equal(then, now)
		default:
			return diff.Equal(then, now)
		}
	}
	return eachEqual(before, now, same)
}

func (h *Handling) alikeMetadata(before, now any, stored map[string]any) bool {
	then, _ := before.(map[string]any)
	metadata, _ := now.(map[string]any)
	return eachEqual(then, metadata, func(key string, then, now any) bool {
		switch key {
		case "resourceVersion", "managedFields":
			return true
		case "generation":
			return h.Sight == requirements.SeesEssence || diff.Equal(then, now)
		case "annotations":
			wanted, _ := then.(map[string]any)
			present, _ := now.(map[string]any)
			if len(stored) > 0 {
				wanted = maps.Clone(wanted)
				if wanted == nil {
					wanted = map[string]any{}
				}
				maps.Copy(wanted, stored)
			}
			return eachEqual(wanted, present, func(_ string, then, now any) bool { return diff.Equal(then, now) })
		default:
			return diff.Equal(then, now)
		}
	})
}

// eachEqual asks about each key of both mappings: what is absent is nil.
func eachEqual(before, now map[string]any, same func(key string, then, now any) bool) bool {
	for key, then := range before {
		if !same(key, then, now[key]) {
			return false
		}
	}
	for key, value := range now {
		if _, asked := before[key]; !asked && !same(key, nil, value) {
			return false
		}
	}
	return true
}
