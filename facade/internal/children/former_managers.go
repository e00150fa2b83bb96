package children

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// unknownManager is the field manager that the API server names for all fields of an object that had no managedFields
// when it was first applied.
const unknownManager = "before-first-apply"

// replicasPath is excluded from a takeover of fields of an unknown manager: an autoscaler may have set it.
var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// formerEntries returns the indices of the managedFields entries that this operator takes over. A manager is a former
// one if it has set our mark of this parent, or if the settings name it.
//
// Without a takeover, fields that the former manager has set and that this operator does not declare would stay in the
// child permanently, and fields that both declare would conflict. Entries of subresources do not concern declared
// fields: an autoscaler's scale entry is one.
func (k *Keeper) formerEntries(parent map[string]any, managed []metav1.ManagedFieldsEntry) (found []int) {
	// A manager's entries of one operation belong together, whatever the version of the API: one marked entry makes all
	// of them former ones.
	type writer struct {
		manager   string
		operation metav1.ManagedFieldsOperationType
	}
	own := writer{k.FieldManager, metav1.ManagedFieldsOperationApply}
	former := map[writer]bool{}
	for _, one := range managed {
		if slices.Contains(k.FormerManagers, one.Manager) || k.hasMarked(parent, one) {
			former[writer{one.Manager, one.Operation}] = true
		}
	}
	for i, one := range managed {
		by := writer{one.Manager, one.Operation}
		if one.Subresource == "" && by != own && former[by] {
			found = append(found, i)
		}
	}
	return found
}

// hasMarked reports whether the fields of the entry include the owner reference to the parent or our label.
func (k *Keeper) hasMarked(parent map[string]any, one metav1.ManagedFieldsEntry) bool {
	fields := fieldsOf(one)
	// Owner references are a list with the uid as its key, so one reference has its own path.
	reference := fieldpath.MakePathOrDie(
		"metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(uidOf(parent))),
	)
	return fields.Has(reference) || fields.Has(fieldpath.MakePathOrDie("metadata", "labels", k.ParentLabel()))
}

// fieldsOf returns the fields of an entry. The set is empty if the entry cannot be read.
func fieldsOf(one metav1.ManagedFieldsEntry) *fieldpath.Set {
	fields := &fieldpath.Set{}
	if one.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(one.FieldsV1.Raw)) != nil {
		return &fieldpath.Set{}
	}
	return fields
}

// applyFirst applies an existing child that this process has not applied before. It takes over the fields of former
// field managers first. The apply then removes those fields that this operator does not declare.
func (k *Keeper) applyFirst(
	ctx context.Context, parent map[string]any, child declaredChild, held *metav1.PartialObjectMetadata,
) (*unstructured.Unstructured, error) {
	// An object without managedFields was written before server-side apply existed, or a client has removed them.
	if len(held.ManagedFields) == 0 {
		if err := k.dryRunManagers(ctx, child, held); err != nil {
			return nil, fmt.Errorf("looking who has changed it: %w", err)
		}
	}
	formers := k.formerEntries(parent, held.ManagedFields)
	if len(formers) == 0 {
		return k.applyOnce(ctx, parent, child, held.UID)
	}
	// The former entries are kept, to restore them if the API server refuses the apply.
	before := slices.Clone(held.ManagedFields)
	if err := k.takeOverFields(ctx, child, held, formers); err != nil {
		return nil, fmt.Errorf("taking over the fields of its former field managers: %w", err)
	}
	made, err := k.applyOnce(ctx, parent, child, held.UID)
	if !apierrors.IsInvalid(err) || isUIDMismatch(err) {
		return made, err
	}
	// The apply removed undeclared fields that the API server requires. The takeover is reverted, so that these fields
	// stay with their former managers.
	if err := k.patchManagers(ctx, held, before); err != nil {
		return nil, fmt.Errorf("giving back the fields of its former field managers: %w", err)
	}
	if made, err = k.applyOnce(ctx, parent, child, held.UID); err == nil {
		logging.Warn(logf.FromContext(ctx), "Cannot take over the fields of a child from former field managers; "+
			"their fields stay", "child", child.String())
	}
	return made, err
}

// dryRunManagers fills in the managedFields of an object without any. A dry run of an empty apply returns the fields
// that the API server would create. Nothing is written.
func (k *Keeper) dryRunManagers(ctx context.Context, child declaredChild, held *metav1.PartialObjectMetadata) error {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(child.object.GroupVersionKind())
	empty.SetNamespace(held.Namespace)
	empty.SetName(held.Name)
	// The uid makes the request fail if another object has the name now.
	empty.SetUID(held.UID)
	err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(empty), client.DryRunAll)
	held.ManagedFields = empty.GetManagedFields()
	return err
}

// takeOverFields makes this operator the field manager of the entries' fields, as if it had set them by server-side
// apply. The paths of fields belong to a version of the API, so entries of one version are merged into ours. Entries of
// other versions are dropped, because they would conflict with the declaration.
func (k *Keeper) takeOverFields(
	ctx context.Context, child declaredChild, held *metav1.PartialObjectMetadata, entries []int,
) error {
	upgraded := held.DeepCopy()
	version := k.fieldsVersion(child, held.ManagedFields, entries)
	var names, dropped []string
	same, others := sets.New[string](), sets.New[string]()
	for _, i := range entries {
		one := &upgraded.ManagedFields[i]
		names = append(names, one.Manager)
		// An additional entry keeps the replicas with the unknown manager: if this operator does not declare them, its
		// apply must not remove an autoscaler's value. The settings can override this by naming the manager.
		if one.Manager == unknownManager && !slices.Contains(k.FormerManagers, unknownManager) &&
			fieldsOf(*one).Has(replicasPath) {
			rest := *one
			rest.FieldsV1 = &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:replicas":{}}}`)}
			upgraded.ManagedFields = append(upgraded.ManagedFields, rest)
			// The append above may have moved the slice.
			one = &upgraded.ManagedFields[i]
		}
		into := same
		if one.APIVersion != version {
			dropped, into = append(dropped, fmt.Sprintf("%s (%s)", one.Manager, one.APIVersion)), others
		}
		// UpgradeManagedFields takes one entry per manager, and only entries of updates. So each entry gets a distinct
		// temporary name and the operation Update.
		one.Manager, one.Operation = fmt.Sprintf("%s (%d)", one.Manager, i), metav1.ManagedFieldsOperationUpdate
		into.Insert(one.Manager)
	}
	// The first upgrade creates or extends our entry; the second finds that entry and drops the other versions.
	for _, managers := range []sets.Set[string]{same, others} {
		if err := csaupgrade.UpgradeManagedFields(upgraded, managers, k.FieldManager); err != nil {
			return err
		}
	}
	slices.Sort(names)
	logf.FromContext(ctx).Info("Taking over the fields of a child from former field managers",
		"child", child.String(), "managers", slices.Compact(names))
	if err := k.patchManagers(ctx, held, upgraded.ManagedFields); err != nil || len(dropped) == 0 {
		return err
	}
	slices.Sort(dropped)
	logging.Warn(logf.FromContext(ctx), "Fields that former field managers have set in another version of the API "+
		"stay in a child; remove those that are not declared",
		"child", child.String(), "managers", slices.Compact(dropped), "version", version)
	return nil
}

// fieldsVersion returns the version of the API whose entries are merged. Our own entry determines it, since a manager
// has one entry per operation. Without one, the declared version is preferred if one of the entries has it.
func (k *Keeper) fieldsVersion(child declaredChild, managed []metav1.ManagedFieldsEntry, entries []int) string {
	for _, one := range managed {
		if one.Manager == k.FieldManager && one.Operation == metav1.ManagedFieldsOperationApply &&
			one.Subresource == "" {
			return one.APIVersion
		}
	}
	for _, i := range entries {
		if managed[i].APIVersion == child.object.GetAPIVersion() {
			return managed[i].APIVersion
		}
	}
	// Any version is valid; the others are dropped with a warning.
	return managed[entries[0]].APIVersion
}

// patchManagers replaces the managedFields of an object. It fails with a conflict if the object has changed since it
// was read, because the entries would then be stale.
func (k *Keeper) patchManagers(
	ctx context.Context, held *metav1.PartialObjectMetadata, managed []metav1.ManagedFieldsEntry,
) error {
	// A JSON patch is used because server-side apply cannot change managedFields.
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/managedFields", "value": managed},
		// The same resourceVersion makes the request a conflict if the object has another one.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": held.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return k.Client.Patch(ctx, held, client.RawPatch(types.JSONPatchType, patch))
}
