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

// claim makes the operator the only field manager of its entries. Server-side apply keeps what another field manager
// has set in them: a former release of this operator by updates, or a client with entries of the same names. The CA
// bundles that others have set in the wanted entries stay theirs.
func (k *kept) claim(ctx context.Context, d document, wanted []any) error {
	const claimant = "claimed" // a field manager for csaupgrade, which has these fields for a moment
	own, injected := ownFields(d, wanted)
	before, managed, claimed := d.object.DeepCopy(), d.object.GetManagedFields(), fieldpath.NewSet()
	for i, one := range managed {
		isOwn, all := one.Manager == k.options.Operator, fieldpath.NewSet()
		if isOwn && one.Operation == metav1.ManagedFieldsOperationApply || one.FieldsV1 == nil ||
			all.FromJSON(bytes.NewReader(one.FieldsV1.Raw)) != nil {
			continue
		}
		rest := all.RecursiveDifference(own)
		if !isOwn {
			rest = rest.Union(all.Intersection(injected))
		}
		if moved := all.Difference(rest); !moved.Empty() {
			claimed = claimed.Union(moved)
			managed[i].FieldsV1 = encoded(rest)
		}
	}
	if claimed.Empty() {
		return nil
	}
	d.object.SetManagedFields(append(managed, metav1.ManagedFieldsEntry{
		Manager: claimant, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: k.kind.GroupVersion().String(), FieldsType: "FieldsV1", FieldsV1: encoded(claimed),
	}))
	if err := csaupgrade.UpgradeManagedFields(d.object, sets.New(claimant), k.options.Operator); err != nil {
		return err
	}
	return k.patchFrom(ctx, before, d)
}

// ownFields are the operator's entries in the object, and the fields of them that an injector of CA bundles has set.
func ownFields(d document, wanted []any) (own, injected *fieldpath.Set) {
	own, injected = fieldpath.NewSet(), fieldpath.NewSet()
	names := namesOf(wanted)
	for _, name := range d.ownNames(wanted) {
		entry := []any{"webhooks", fieldpath.KeyByFields("name", name)}
		own.Insert(fieldpath.MakePathOrDie(entry...))
		if !slices.Contains(names, name) {
			continue // an injector must not keep an entry that is removed
		}
		for _, path := range [][]any{nil, {"name"}, {"clientConfig"}, {"clientConfig", "caBundle"}} {
			injected.Insert(fieldpath.MakePathOrDie(slices.Concat(entry, path)...))
		}
	}
	return own, injected
}

// encoded returns the fields as managedFields have them. All of them were decoded before.
func encoded(fields *fieldpath.Set) *metav1.FieldsV1 {
	data, _ := fields.ToJSON()
	return &metav1.FieldsV1{Raw: data}
}

// patchFrom writes the changes of the object since a former state, unless others have changed it meanwhile.
func (k *kept) patchFrom(ctx context.Context, before client.Object, d document) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return k.options.Client.Patch(ctx, d.object, patch, client.FieldOwner(k.options.Operator))
}
