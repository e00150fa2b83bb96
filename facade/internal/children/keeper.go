package children

import (
	"context"
	"errors"

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
	// Manager is the field manager of the Client, and FormerManagers are those whose fields of children become its own.
	Manager        string
	FormerManagers []string

	// NoLabels has children inherit no labels of their parent; LikeKopf has them inherit all.
	NoLabels, LikeKopf bool

	// Owned are the children that are watched; nil is none. Watched tells which kinds are.
	Owned   *owned.Children
	Watched func(kind schema.GroupKind) bool
	// Repaired, if set, is called after the repair of a child.
	Repaired func(parent, child string)

	memory memory
	latest latestRecords
}

// Handler is who declares children: each has a set of its own for each parent.
type Handler struct {
	ID string
	// FormerIDs are ids under which former versions of the operator have stored the set. The sets are merged.
	FormerIDs []string
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
	all, wanted, invalid := k.prepare(ctx, parent, given)
	whole := wanted
	if invalid != nil {
		whole = nil
	}
	err := k.runPass(ctx, parent, handler, func(p *pass) error { return p.run(ctx, all, wanted, whole) })
	return errors.Join(invalid, err)
}

// prepare returns the declared children in the form and order in which they are applied. The error names the children
// that cannot be applied; the others do not depend on them.
func (k *Keeper) prepare(
	ctx context.Context, parent Parent, given []any,
) (all []declared, wanted set, err error) {
	valid, malformed := declare(k.Client.Scheme(), given)
	all, unplaced := k.mark(ctx, parent.Newest(), valid)
	wanted = make(set, len(all))
	for _, child := range all {
		wanted[child.identity] = result{}.entry(child)
	}
	return providersFirst(all), wanted, errors.Join(malformed, unplaced)
}

// runPass has the function work on the children of the parent, while no other call does.
func (k *Keeper) runPass(ctx context.Context, parent Parent, handler Handler, act func(p *pass) error) error {
	body := parent.Newest()
	leave, err := k.memory.awaitTurn(ctx, uidOf(body))
	if err != nil {
		return err
	}
	defer leave()
	if patching.BeingDeleted(parent.Newest()) {
		return ErrDeleting
	}
	p := &pass{keeper: k, parent: parent, name: nameOf(k.Prefix, body, handler), handler: handler}
	for _, id := range handler.FormerIDs {
		p.former = append(p.former, nameOf(k.Prefix, body, Handler{ID: id, Background: handler.Background}))
	}
	return act(p)
}

// Release deletes all children that the object has declared and cannot own: it is being deleted.
func (k *Keeper) Release(ctx context.Context, body map[string]any) error {
	leave, err := k.memory.awaitTurn(ctx, uidOf(body))
	if err != nil {
		return err
	}
	defer leave()
	all, err := recordedAll(body, k.isRecord)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Leaving children of a deleted object, as they are not known")
	}
	held := all.proven(union(k.memory.proven(uidOf(body)))).distrusted().held(namespaceOf(body))
	var failed []error
	for _, child := range held.without(k.strangers(ctx, body, held)).sorted() {
		failed = append(failed, k.remove(ctx, body, child, held[child]))
	}
	return errors.Join(failed...)
}

// Held reports whether the object has declared children that it cannot own. An object that has the finalizer may have
// it for a child that a forged record calls retained, so Release has to look at that child. Without the finalizer, a
// retained child does not need it.
func (k *Keeper) Held(body map[string]any) bool {
	if k.memory.hasHeld(uidOf(body)) {
		return true // whatever has become of the record
	}
	all, err := recordedAll(body, k.isRecord)
	if err == nil && all.hasRetained() && patching.HasFinalizer(body, k.Finalizer) {
		all = all.proven(union(k.memory.proven(uidOf(body)))).distrusted()
	}
	return err == nil && len(all.held(namespaceOf(body))) > 0
}

func (k *Keeper) isRecord(name string) bool {
	is, _ := isRecord(k.Prefix, name)
	return is
}

func namespaceOf(body map[string]any) string {
	return (&unstructured.Unstructured{Object: body}).GetNamespace()
}
