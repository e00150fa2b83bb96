package configurations

import (
	"bytes"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimEntries makes the operator the only field manager of its entries. Server-side apply only removes fields that no
// other manager owns. Other managers own such fields after updates by a former release of this operator, or if a client
// has written entries of the same names. CA bundles that others have injected into the wanted entries stay theirs.
func (k *managedObject) claimEntries(ctx context.Context, d document, wanted []any) error {
	const claimant = "claimed" // a temporary field manager for csaupgrade
	own, injected := ownedFields(d, wanted)
	before, managed, claimed := d.object.DeepCopy(), d.object.GetManagedFields(), fieldpath.NewSet()
	// First, move the fields of the operator's entries away from all other managers.
	for i, one := range managed {
		isOwn, all := one.Manager == k.options.Operator, fieldpath.NewSet()
		// The operator's own apply keeps its fields. Unreadable fields are skipped.
		if isOwn && one.Operation == metav1.ManagedFieldsOperationApply || one.FieldsV1 == nil ||
			all.FromJSON(bytes.NewReader(one.FieldsV1.Raw)) != nil {
			continue
		}
		rest := all.RecursiveDifference(own)
		// An injector, such as cert-manager's, keeps the CA bundle that it has set. A former release of this operator
		// does not.
		if !isOwn {
			rest = rest.Union(all.Intersection(injected))
		}
		if moved := all.Difference(rest); !moved.Empty() {
			claimed = claimed.Union(moved)
			managed[i].FieldsV1 = encodeFields(rest)
		}
	}
	// Usually there is nothing to move, so this request is rare.
	if claimed.Empty() {
		return nil
	}
	// Then, csaupgrade merges the moved fields into the operator's apply entry.
	d.object.SetManagedFields(append(managed, metav1.ManagedFieldsEntry{
		Manager: claimant, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: k.kind.GroupVersion().String(), FieldsType: "FieldsV1", FieldsV1: encodeFields(claimed),
	}))
	if err := csaupgrade.UpgradeManagedFields(d.object, sets.New(claimant), k.options.Operator); err != nil {
		return err
	}
	return k.patchChanges(ctx, before, d)
}

// ownedFields returns the fields of the operator's entries in the object, and those that an injector of CA bundles may
// own.
func ownedFields(d document, wanted []any) (own, injected *fieldpath.Set) {
	own, injected = fieldpath.NewSet(), fieldpath.NewSet()
	names := namesOfEntries(wanted)
	for _, name := range d.ownEntryNames(wanted) {
		// Webhooks are an associative list: the name of an entry is its key.
		entry := []any{"webhooks", fieldpath.KeyByFields("name", name)}
		own.Insert(fieldpath.MakePathOrDie(entry...))
		if !slices.Contains(names, name) {
			continue // an injector must not keep a removed entry alive
		}
		// The parents of the bundle are included, because an owner of a field also owns the path to it.
		for _, path := range [][]any{nil, {"name"}, {"clientConfig"}, {"clientConfig", "caBundle"}} {
			injected.Insert(fieldpath.MakePathOrDie(slices.Concat(entry, path)...))
		}
	}
	return own, injected
}

// encodeFields returns the fields in the encoding of managedFields. They were decoded before, so this cannot fail.
func encodeFields(fields *fieldpath.Set) *metav1.FieldsV1 {
	data, _ := fields.ToJSON()
	return &metav1.FieldsV1{Raw: data}
}

// patchChanges writes the changes since a former state of the object. It is a conflict if others have changed the
// object in the meantime.
func (k *managedObject) patchChanges(ctx context.Context, before client.Object, d document) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return k.options.Client.Patch(ctx, d.object, patch, client.FieldOwner(k.options.Operator))
}
