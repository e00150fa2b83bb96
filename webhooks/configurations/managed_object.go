package configurations

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// maxConflictRetries limits how often a write is retried at once after a conflict. After that, the retry is delayed.
const maxConflictRetries = 10

// managedObject is one of the two objects.
type managedObject struct {
	writer  *Writer
	options Options
	kind    schema.GroupVersionKind
	// writtenVersion is the version of the entries that this process applied last, or zero. applied is the resource
	// version of the object after that. Only the goroutine of Run uses them.
	writtenVersion         int
	appliedResourceVersion string
}

// applyIfDue applies the entries if that is due.
func (k *managedObject) applyIfDue(ctx context.Context, wanted []any, version int) error {
	if k.options.Form.AsKopf {
		return k.applyAsKopf(ctx, wanted, version)
	}
	return k.editObject(ctx, func(d document) error {
		if !k.isApplyDue(d, version) {
			return nil
		}
		// An operator without admission handlers does not issue certificates, so its records are removed, too.
		if k.writer.isWithdrawn() && len(d.recordedFingerprints()) > 0 {
			if err := k.setFingerprints(ctx, d, nil); err != nil {
				return err
			}
		}
		// Without entries, an object is neither created nor marked.
		if len(wanted) > 0 || d.hasMark() {
			own := mark{LastWriter: k.options.Identity, StartTime: k.options.StartTime}
			if err := k.applyEntries(ctx, d, wanted, own); err != nil {
				return err
			}
		}
		// After an error, the former version stays, so the next check applies the entries again.
		k.writtenVersion = version
		return nil
	})
}

// isApplyDue reports whether the entries must be applied: they have changed here, no process is responsible for them
// any more, an older process has written its own, or others have changed the object, possibly in these entries.
func (k *managedObject) isApplyDue(d document, version int) bool {
	m := d.readMark()
	switch {
	case version != k.writtenVersion || m.LastWriter == "":
		return true
	case m.LastWriter == k.options.Identity:
		// Leaving can remain from an exit that was not completed. Any change of the object could concern these entries.
		// Applying them again repairs them, and changes nothing if they are intact.
		return m.IsExiting || d.object.GetResourceVersion() != k.appliedResourceVersion
	default:
		// The youngest process wins, so a younger one's entries stay until it leaves.
		return m.IsExiting || k.writer.isOlderProcess(m)
	}
}

// editObject reads the object and changes it. It retries if others have changed, created or deleted the object in the
// meantime.
func (k *managedObject) editObject(ctx context.Context, change func(d document) error) error {
	var err error
	for range maxConflictRetries {
		var d document
		if d, err = k.readObject(ctx); err != nil {
			return err
		}
		err = change(d)
		// The three errors mean that the object was changed, created or deleted after it was read.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return explainForbidden(err, k.writtenVersion > 0)
}

// readObject returns the object, or a new one without a resource version if it does not exist.
func (k *managedObject) readObject(ctx context.Context) (document, error) {
	d := newDocument(k.kind, k.options.Name, k.options.Operator+"/webhooks")
	err := k.options.Client.Get(ctx, client.ObjectKey{Name: k.options.Name}, d.object)
	if apierrors.IsNotFound(err) {
		return newDocument(k.kind, k.options.Name, d.annotation), nil
	}
	return d, explainForbidden(err, k.writtenVersion > 0)
}

// applyEntries replaces the operator's entries and its mark. All processes of the operator are one field manager, so
// apply alone does not detect their conflicts. The resource version does: a concurrent write of another process is a
// conflict.
func (k *managedObject) applyEntries(ctx context.Context, d document, entries []any, m mark) error {
	former := d.object.GetResourceVersion()
	if err := k.claimEntries(ctx, d, entries); err != nil {
		return err
	}
	// The applied object only contains the operator's own fields.
	declared := newDocument(k.kind, k.options.Name, d.annotation)
	declared.object.SetResourceVersion(d.object.GetResourceVersion())
	if err := declared.declareEntries(entries, m); err != nil {
		return err
	}
	// ForceOwnership resolves conflicts with other field managers in favor of the operator.
	err := k.options.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(declared.object),
		client.FieldOwner(k.options.Operator), client.ForceOwnership)
	if err != nil {
		return err
	}
	// Apply of the same content does not change the resource version, and is not logged.
	if k.appliedResourceVersion = declared.object.GetResourceVersion(); k.appliedResourceVersion != former {
		logf.FromContext(ctx).Info("Wrote a webhook configuration", "kind", k.kind.Kind, "name", k.options.Name,
			"entries", len(entries))
	}
	return nil
}

// applyAsKopf replaces all entries of the object when those of this operator have changed. As in Kopf, it does not read
// the object, and does not detect changes by others.
func (k *managedObject) applyAsKopf(ctx context.Context, wanted []any, version int) error {
	if version == k.writtenVersion {
		return nil
	}
	// The patch below does not create a missing object.
	d := newDocument(k.kind, k.options.Name, "")
	if k.writtenVersion == 0 {
		err := k.options.Client.Create(ctx, d.object, client.FieldOwner(k.options.Operator))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return explainForbidden(err, false)
		}
	}
	if err := k.patchEntries(ctx, wanted); err != nil {
		if apierrors.IsNotFound(err) {
			k.writtenVersion = 0 // the object was deleted: the next attempt creates it
		}
		return err
	}
	logf.FromContext(ctx).Info("Wrote a webhook configuration", "kind", k.kind.Kind, "name", k.options.Name,
		"entries", len(wanted))
	k.writtenVersion = version
	return nil
}

// patchEntries replaces all entries, with a merge patch as in Kopf.
func (k *managedObject) patchEntries(ctx context.Context, wanted []any) error {
	// A null would be valid, too, but Kopf writes an empty list.
	if wanted == nil {
		wanted = []any{}
	}
	data, err := json.Marshal(map[string]any{"webhooks": wanted})
	if err != nil {
		return fmt.Errorf("encoding the entries: %w", err)
	}
	d := newDocument(k.kind, k.options.Name, "")
	return k.options.Client.Patch(ctx, d.object, client.RawPatch(types.MergePatchType, data),
		client.FieldOwner(k.options.Operator))
}

// watchChanges triggers a check of the object whenever it changes, until the context ends. Without the permission to
// watch, changes by others are only found at intervals.
func (k *managedObject) watchChanges(ctx context.Context) {
	// A missing permission is logged once, and again if there was a watch in between.
	isLogged := false
	for ctx.Err() == nil {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.kind)
		// The selector allows a permission to watch that is restricted to this object by resourceNames.
		events, err := k.options.Client.Watch(ctx, list, &client.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", k.options.Name),
		})
		after := time.Second
		if err != nil && ctx.Err() == nil {
			after = checkInterval
			if !isLogged {
				logging.Warn(logf.FromContext(ctx),
					"Cannot watch a webhook configuration; changes by others are found by looking at it",
					"kind", k.kind.Kind, "name", k.options.Name, "reason", err.Error(), "within",
					checkInterval.String())
			}
			isLogged = true
		}
		if err == nil {
			isLogged = false
			// The content of events is not used, because the check reads the object anyway.
			for range events.ResultChan() {
				k.writer.triggerCheck()
			}
			events.Stop()
		}
		// A watch that ends at once must not become a busy loop.
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
}

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
