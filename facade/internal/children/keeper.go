package children

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// ErrDeleting is the error of Ensure for a parent in deletion: children can no longer be declared.
var ErrDeleting = errors.New("the object is being deleted, and its children with it: Ensure is for objects that stay")

// Keeper manages the children of all parents of one operator. The fields must not change after the first use. All
// methods may be called concurrently; calls for one parent wait for each other.
//
// It never relies on the records alone, since other clients can write them. A child is updated or deleted only if the
// object itself has our mark, or under the uid that this process has applied.
type Keeper struct {
	// Client applies and deletes children with the operator's field manager. Live reads from the API server, not from
	// the cache.
	Client    client.Client
	APIReader client.Reader
	// Prefix is the prefix of annotations and labels. Finalizer blocks the deletion of parents with children that owner
	// references cannot hold.
	Prefix, Finalizer string
	// FieldManager is the field manager of the Client. FormerManagers are field managers whose fields of children it
	// takes over.
	FieldManager   string
	FormerManagers []string

	// NoLabels makes children inherit no labels of their parent. LikeKopf makes them inherit all labels.
	NoLabels, LikeKopf bool

	// OwnedChildren holds the watched children; nil if none are watched. Watched reports whether a kind of children is
	// watched.
	OwnedChildren *owned.Children
	WatchesKind   func(kind schema.GroupKind) bool
	// OnRepair, if set, is called after each repair with the kinds of the parent and the child, for the metrics.
	OnRepair func(parent, child string)

	memory      memory
	recordCache recordCache
}

// DeclaringHandler identifies a handler that declares children. Each handler has its own set for each parent.
type DeclaringHandler struct {
	ID string
	// FormerIDs are ids under which former versions of the operator have stored the set. The sets are merged.
	FormerIDs []string
	// Background is true for daemons and timers. It distinguishes them from change handlers of the same id.
	Background bool
}

// Parent is the object whose children are declared, from the point of view of one call of a handler.
type Parent struct {
	// NewestState returns the newest known state of the object. The state is shared and must not be modified.
	NewestState func() map[string]any
	// CallState is the working copy of the call, with its unsaved changes. If it is nil, the newest state is used.
	CallState map[string]any
	// Writes stores changes of the object.
	Writes handlers.ObjectWriter
}

// workingCopy returns the working copy, which can contain records that are not written yet.
func (p Parent) workingCopy() map[string]any {
	if p.CallState != nil {
		return p.CallState
	}
	return p.NewestState()
}

// Ensure applies the given children of the parent, and deletes the ones that the handler declared before and that are
// not among them. Most changes of the records are written with the handler's outcome. A new child is written before it
// is applied, so that it cannot be lost.
//
// If any child fails, the others are applied, and none is deleted.
func (k *Keeper) Ensure(ctx context.Context, parent Parent, handler DeclaringHandler, given []any) error {
	all, wanted, invalid := k.prepareChildren(ctx, parent, given)
	// Without the whole set, nothing may be pruned: an invalid child may be one of the existing children.
	whole := wanted
	if invalid != nil {
		whole = nil
	}
	err := k.runPass(ctx, parent, handler, func(p *pass) error { return p.applyAndPrune(ctx, all, wanted, whole) })
	return errors.Join(invalid, err)
}

// prepareChildren decodes, marks and sorts the declared children. The error names the invalid children; the valid ones
// do not depend on them and are returned.
func (k *Keeper) prepareChildren(
	ctx context.Context, parent Parent, given []any,
) (all []declaredChild, wanted childSet, err error) {
	valid, malformed := decodeChildren(k.Client.Scheme(), given)
	all, unplaced := k.markChildren(ctx, parent.NewestState(), valid)
	wanted = make(childSet, len(all))
	for _, child := range all {
		wanted[child.identity] = childResult{}.recordEntry(child)
	}
	return providersFirst(all), wanted, errors.Join(malformed, unplaced)
}

// runPass calls the function while no other call works on the children of the parent.
func (k *Keeper) runPass(ctx context.Context, parent Parent, handler DeclaringHandler, act func(p *pass) error) error {
	body := parent.NewestState()
	leave, err := k.memory.awaitTurn(ctx, uidOf(body))
	if err != nil {
		return err
	}
	defer leave()
	// The state is read after the wait: the deletion may have begun meanwhile, and Release may have run.
	if patching.IsBeingDeleted(parent.NewestState()) {
		return ErrDeleting
	}
	// Names of records depend on the object's kind and owner, so they are computed per parent.
	p := &pass{keeper: k, parent: parent, recordName: recordAnnotation(k.Prefix, body, handler), handler: handler}
	for _, id := range handler.FormerIDs {
		p.formerNames = append(p.formerNames, recordAnnotation(k.Prefix, body,
			DeclaringHandler{ID: id, Background: handler.Background}))
	}
	return act(p)
}

// Release deletes all declared children of an object in deletion that owner references cannot hold.
func (k *Keeper) Release(ctx context.Context, body map[string]any) error {
	leave, err := k.memory.awaitTurn(ctx, uidOf(body))
	if err != nil {
		return err
	}
	defer leave()
	// An unreadable record must not block the deletion forever. The children that this process has applied are deleted
	// in spite of it.
	all, err := readAllChildren(body, k.isRecord)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Leaving children of a deleted object, as they are not known")
	}
	// Retention that only a record claims is ignored here; [Keeper.deleteListed] reads it from the child.
	proofs := unionOf(k.memory.provenRecords(uidOf(body)))
	held := all.withProofs(proofs).withoutUnprovenRetention().notOwnable(namespaceOf(body))
	var failed []error
	for _, child := range held.without(k.findStrangers(ctx, body, held)).sortedIdentities() {
		failed = append(failed, k.deleteListed(ctx, body, child, held[child]))
	}
	return errors.Join(failed...)
}

// HasDependents reports whether the object has declared children that it cannot own, so that its deletion must be
// blocked.
//
// If the object has the finalizer already, retained children of the record count as well: a forged record can call a
// child retained, and Release must check the child itself. Without the finalizer, a retained child does not need it.
func (k *Keeper) HasDependents(body map[string]any) bool {
	if k.memory.hasHeld(uidOf(body)) {
		return true // even if the record was removed or forged
	}
	all, err := readAllChildren(body, k.isRecord)
	if err == nil && all.hasRetained() && patching.HasFinalizer(body, k.Finalizer) {
		all = all.withProofs(unionOf(k.memory.provenRecords(uidOf(body)))).withoutUnprovenRetention()
	}
	return err == nil && len(all.notOwnable(namespaceOf(body))) > 0
}

// isRecord reports whether the annotation is a record of any handler of this operator.
func (k *Keeper) isRecord(name string) bool {
	is, _ := isRecord(k.Prefix, name)
	return is
}

// namespaceOf returns the namespace of an object; empty for a cluster-scoped one.
func namespaceOf(body map[string]any) string {
	return (&unstructured.Unstructured{Object: body}).GetNamespace()
}
