package facadetest

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// trial is an object in its cluster, with all that the handlers of the test need.
type trial[T client.Object] struct {
	by      string // the constructor, for messages
	wishes  *wishes
	subject *subject[T]
	cluster *cluster         // nil before the first call
	keeper  *children.Keeper // that of the present call
	watch   *watch           // of the present call
}

func newTrial[T client.Object](by string, object T, options []Option, takes ...string) trial[T] {
	w := newWishes(by, options, append(takes, optClient, optID)...)
	return trial[T]{by: by, wishes: w, subject: newSubject(by, object, w)}
}

// handler is the one that is registered, as the engine would get it.
func (t *trial[T]) handler(absent *noClient, register func(s kopf.Selection[T])) *handlers.Handler {
	op := kopf.New(operator)
	selection := kopf.For(op, t.subject.prototype())
	register(selection)
	t.own(selection)
	c := absent.client(t.subject.scheme)
	if t.wishes.client != nil {
		t.watch = &watch{client: t.wishes.client, kinds: slices.Concat(
			t.watchedKinds(optOwns, t.wishes.owns), t.watchedKinds(optWatches, t.wishes.watches))}
		c = watched{withMapper(t.wishes.client), t.watch.look}
	}
	parts, err := kit.PartsOf(op, t.subject.scheme, c)
	if err != nil {
		mistake("%s: registering the handler: %v", t.by, err)
	}
	if t.keeper = parts.Children; t.keeper.Owned != nil && t.watch != nil {
		t.watch.source = t.keeper.Owned.Watch(nil, t.watch.find)
	}
	for _, h := range parts.Handlers {
		if h.Call != nil {
			return h
		}
	}
	mistake("%s: no handler was registered", t.by)
	return nil
}

// kind is what the handlers of the object's kind share.
func (t *trial[T]) kind(r *recorder) kind.Kind {
	return kind.Kind{
		Settings: settings.Settings{}.Resolved(), Resource: t.subject.discovered(), Cache: t.cluster, Place: r,
		Writer: t.cluster.writer, StatusSubresource: true, Events: r,
	}
}

// outcome is what the recorder has seen, and what is in the cluster now.
func (t *trial[T]) outcome(r *recorder, absent *noClient, failed error) Outcome[T] {
	now, sinceThen := t.cluster.written()
	called, attempt, posted, all, inPlace := r.seen()
	o := Outcome[T]{
		Called: called, Object: t.subject.changed(sinceThen), Patch: now, Events: posted, Subs: all, InPlace: inPlace,
	}
	o.conclude(attempt)
	o.add(failed)
	o.add(absent.err())
	declared, err := children.Declared(operator, t.cluster.body())
	o.add(err)
	o.Children = declared
	return o
}

// run makes an attempt of a handler that keeps no record on the object, and writes what came of it.
func (t *trial[T]) run(ctx context.Context, a *execution.Attempt, r *recorder) error {
	a.Account = execution.Account{Retries: t.wishes.retry, Started: t.wishes.started}
	a.Call.Events, a.Call.Resource = r, t.subject.discovered()
	a.FlushNow = func(ctx context.Context) error { return t.write(ctx, a) }
	adapters.New(a.Call.Handler, nil).Run(ctx, a)
	r.Enter(a)
	return t.write(ctx, a)
}

// write sends what was remembered so far; after the end of the attempt, the result as well.
func (t *trial[T]) write(ctx context.Context, a *execution.Attempt) error {
	remembered := a.Remembered()
	patch := patching.Patch{Transforms: patching.Contained(remembered)}
	if err := patch.AddResult(a.Call.Handler.ID, a.Result(), a.Call.Handler.FormerIDs...); err != nil || patch.Empty() {
		return err
	}
	target := patching.Target{Body: t.cluster.body(), StatusSubresource: true}
	result, err := t.cluster.writer.ApplyRetrying(context.WithoutCancel(ctx), target, patch, nil)
	if err = errors.Join(err, result.StatusRefused); err == nil {
		a.Written(len(remembered))
	}
	return err
}
