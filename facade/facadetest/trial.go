package facadetest

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// trial is an object in its cluster, with everything that one handler under test needs. A trial serves several calls.
type trial[T client.Object] struct {
	constructor string // the name of the constructor, for messages
	options     *optionValues
	subject     *subject[T]
	cluster     *cluster         // nil before the first call
	keeper      *children.Keeper // of the present call
	informers   *childInformers  // of the present call; nil without a client
	absent      *missingClient   // of the present call
}

// newTrial applies the options that the constructor accepts. [Client] and [ID] are always accepted.
func newTrial[T client.Object](by string, object T, options []Option, takes ...string) trial[T] {
	w := newOptionValues(by, options, append(takes, optClient, optID)...)
	return trial[T]{constructor: by, options: w, subject: newSubject(by, object, w)}
}

// registerHandler registers the function with a new operator and returns the handler that the engine would run. It is
// repeated for each call, as calls can have other functions and options.
func (t *trial[T]) registerHandler(register func(s kopf.Selection[T])) *handlers.Handler {
	op := kopf.New(operatorName)
	selection := kopf.For(op, t.subject.newPrototype())
	register(selection)
	t.registerChildKinds(selection)
	t.absent = &missingClient{}
	c := t.absent.newClient(t.subject.scheme)
	if t.options.client != nil {
		t.informers = &childInformers{client: t.options.client, kinds: slices.Concat(
			t.watchedKinds(optOwns, t.options.owns), t.watchedKinds(optWatches, t.options.watches))}
		c = relistingClient{withSchemeMapper(t.options.client), t.informers.syncChildren}
	}
	parts, err := kit.PartsOf(op, t.subject.scheme, c)
	if err != nil {
		panicMisuse("%s: registering the handler: %v", t.constructor, err)
	}
	// Only a keeper with watched kinds has a cache of children.
	if t.keeper = parts.Children; t.keeper.OwnedChildren != nil && t.informers != nil {
		t.informers.source = t.keeper.OwnedChildren.StartSource(nil, t.informers.findCachedObject)
	}
	// Owns and Watches also register handlers, without a function.
	for _, h := range parts.Handlers {
		if h.Call != nil {
			return h
		}
	}
	panicMisuse("%s: no handler was registered", t.constructor)
	return nil
}

// beginCall marks the start of a call and returns its recorder. The first call stores the object unchanged, unless it
// is for a change, which needs the operator's stored state.
func (t *trial[T]) beginCall() *recorder {
	if t.cluster == nil {
		t.cluster = newCluster(t.subject.servedResource(), t.subject.bodyAsStored())
	}
	t.cluster.beginCall()
	return &recorder{objectUID: string(t.subject.uid)}
}

// engineKind returns the settings and clients that all handlers of the object's kind share.
func (t *trial[T]) engineKind(r *recorder) kind.HandledKind {
	return kind.HandledKind{
		Settings: kind.Settings{}.WithDefaults(), Resource: t.subject.discoveredResource(), Cache: t.cluster,
		Slot:   r,
		Writer: t.cluster.writer, StatusSubresource: true, Events: r,
	}
}

// newOutcome returns the recorded call, its errors, and the state of the cluster.
func (t *trial[T]) newOutcome(r *recorder, failed error) Outcome[T] {
	now, sinceThen := t.cluster.writtenPatches()
	called, attempt, posted, all, inPlace := r.copyRecorded()
	o := Outcome[T]{
		Called: called, Object: t.subject.withMergePatch(sinceThen), Patch: now, Events: posted, Subs: all,
		InPlace: inPlace,
	}
	o.applyAttempt(attempt)
	o.joinError(failed)
	o.joinError(t.absent.usageError())
	// The names of the children are a part of the operator's stored state.
	declared, err := children.DeclaredNames(operatorName, t.cluster.storedBody())
	o.joinError(err)
	o.Children = declared
	return o
}

// runAttempt makes an attempt of a handler without a record on the object, and writes its changes. The number of
// retries and the start come from the options instead of a record.
func (t *trial[T]) runAttempt(ctx context.Context, a *execution.Attempt, r *recorder) error {
	a.Account = execution.Account{Retries: t.options.retry, Started: t.options.started}
	a.Call.Events, a.Call.Resource = r, t.subject.discoveredResource()
	a.FlushNow = func(ctx context.Context) error { return t.writeAttempt(ctx, a) }
	adapters.New(a.Call.Handler, nil).RunAttempt(ctx, a)
	// The attempt has no Place, so the engine does not enter it.
	r.Enter(a)
	return t.writeAttempt(ctx, a)
}

// writeAttempt writes the changes that are not written yet. After the end of the attempt, it also writes the result.
// The function can call it while it runs, to flush its changes.
func (t *trial[T]) writeAttempt(ctx context.Context, a *execution.Attempt) error {
	remembered := a.UnwrittenTransforms()
	patch := patching.Patch{Transforms: patching.ContainPanics(remembered)}
	err := patch.AddResult(a.Call.Handler.ID, a.ResultToWrite(), a.Call.Handler.FormerIDs...)
	if err != nil || patch.IsEmpty() {
		return err
	}
	target := patching.Target{Body: t.cluster.storedBody(), StatusSubresource: true}
	// The changes are written even if the context of the function was cancelled.
	result, err := t.cluster.writer.ApplyRetrying(context.WithoutCancel(ctx), target, patch)
	if err = errors.Join(err, result.StatusRefusal); err == nil {
		a.MarkWritten(len(remembered))
	}
	return err
}
