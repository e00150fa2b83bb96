package controller

import (
	"context"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// KindPreview predicts the first passes over the objects of one kind. It needs no cluster and writes nothing. It calls
// filters and index functions, but no other handlers.
type KindPreview struct {
	deps     *Dependencies
	changes  *changes.ChangeHandling
	families adapters.Families
	feed     *indexes.Feed // nil without index functions
	initial  bool          // there are resume handlers
}

// ObjectPreview is what the operator would do first for one object when it starts.
type ObjectPreview struct {
	changes.Preview
	// Starting are the daemons and timers that would start, and Notified the handlers of raw events that would get the
	// object.
	Starting, Notified []*handlers.Handler
	// Err is the reason why the object would not be handled: malformed memory, or the error of a filter.
	Err error
}

// NewKindPreview prepares the previews for a resource and its handlers.
func NewKindPreview(deps *Dependencies, r discovery.Resource, own []*adapters.HandlerChain) *KindPreview {
	of := kind.HandledKind{
		Settings: deps.Settings, Resource: &r, StatusSubresource: r.HasStatus(), Journal: deps.JournalOf(r, own),
	}
	k := &KindPreview{deps: deps, changes: newChanges(deps, of, own, own), families: adapters.ByFamily(own)}
	for _, h := range k.families.Changing {
		k.initial = k.initial || h.Description.Initial
	}
	// A supervisor without a service starts nothing, and reports which objects its handlers hold.
	if len(k.families.Background) > 0 {
		supervisor := &background.Supervisor{}
		supervisor.AllowStarts(background.KindSettings{
			HandledKind: kind.HandledKind{Settings: deps.Settings, Resource: &r}, Handlers: k.families.Background,
			Log: logr.Discard(),
		}, nil)
		k.changes.Background = supervisor
	}
	if len(k.families.Indexing) > 0 {
		k.feed = new(indexes.Indexer).BeginFeed(indexes.IndexTask{
			Handlers: k.families.Indexing, Resource: &r, Backoff: deps.Settings.Backoff,
			Log: logging.OfKind(deps.Log, r.GroupVersionKind),
		})
	}
	return k
}

// HasIndices reports whether index functions need the objects of the kind before any preview.
func (k *KindPreview) HasIndices() bool { return k.feed != nil }

// HandlesObjects reports whether there are handlers that a preview is about.
func (k *KindPreview) HandlesObjects() bool {
	return len(k.families.Changing)+len(k.families.Background)+len(k.families.Watching) > 0
}

// IndexObject calls the index functions for an object of the first list.
func (k *KindPreview) IndexObject(body map[string]any) error {
	cached, err := compact.NewFromBody(body)
	if err == nil {
		k.feed.HandleEvent("", cached)
	}
	return err
}

// PreviewObject predicts the first pass over an object of the first list.
func (k *KindPreview) PreviewObject(ctx context.Context, body map[string]any) (found ObjectPreview) {
	// The preview returns the decisions, so their log lines are not needed.
	ctx = logf.IntoContext(ctx, logr.Discard())
	found.Preview, found.Err = k.changes.Preview(ctx, jsontext.NewFromValue(body), k.initial)
	if found.Err != nil || found.Cause == nil {
		return found
	}
	for _, h := range k.matching(ctx, k.families.Background, &found) {
		// Nothing starts on an object that is being deleted, or without the finalizer that it needs.
		if !found.Cause.Deleting && (found.Cause.HasFinalizer || h.Optional) {
			found.Starting = append(found.Starting, h)
		}
	}
	found.Notified = k.matching(ctx, k.families.Watching, &found)
	return found
}

// matching returns the handlers of another family that match the object. An error ends the preview of the object.
func (k *KindPreview) matching(
	ctx context.Context, all []*adapters.HandlerChain, found *ObjectPreview,
) []*handlers.Handler {
	chosen, err := adapters.Select(ctx, all, found.Cause, nil)
	if err != nil {
		found.Err = err
	}
	return adapters.DescriptionsOf(chosen)
}

// PreviewJournal returns a journal that keeps the decisions about one object only: each preview returns its own.
func PreviewJournal() *journal.Journal {
	return journal.New(journal.RetentionLimits{Objects: 1, Entries: 1})
}
