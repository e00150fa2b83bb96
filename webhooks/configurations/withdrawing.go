package configurations

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StoredEntries are the entries of an operator in one webhook configuration.
type StoredEntries struct {
	object *managedObject
}

// FindEntries returns the webhook configurations with entries or marks of the operator, for a command that withdraws
// them while no process of the operator is running. The error joins those of both objects.
func FindEntries(ctx context.Context, o Options) (found []StoredEntries, err error) {
	err = NewWriter(o).forEachObject(func(object *managedObject) error {
		d, err := object.readObject(ctx)
		if err == nil && object.isStored(d) {
			found = append(found, StoredEntries{object})
		}
		return err
	})
	return found, err
}

// isStored reports whether the object has anything of the operator.
func (k *managedObject) isStored(d document) bool {
	if k.options.Form.AsKopf {
		return len(d.allEntries()) > 0
	}
	return d.hasMark() || len(d.recordedFingerprints()) > 0
}

// String names the webhook configuration.
func (s StoredEntries) String() string { return s.object.kind.Kind + " " + s.object.options.Name }

// Withdraw removes the entries and marks of the operator, and the object if it is empty then and only the operator has
// written it. It fails if a process of the operator is writing at the same time.
func (s StoredEntries) Withdraw(ctx context.Context) error {
	k := s.object
	if k.options.Form.AsKopf {
		if err := k.patchEntries(ctx, nil); err != nil {
			return err
		}
	} else if err := k.editObject(ctx, func(d document) error {
		if len(d.recordedFingerprints()) > 0 {
			if err := k.setFingerprints(ctx, d, nil); err != nil {
				return err
			}
		}
		if !d.hasMark() {
			return nil
		}
		return k.applyEntries(ctx, d, nil, mark{})
	}); err != nil {
		return err
	}
	return k.editObject(ctx, func(d document) error { return k.deleteIfUnused(ctx, d) })
}

// deleteIfUnused deletes the object if it contains nothing, and no other field manager has written it.
func (k *managedObject) deleteIfUnused(ctx context.Context, d document) error {
	if d.object.GetResourceVersion() == "" || len(d.allEntries()) > 0 ||
		len(d.object.GetAnnotations()) > 0 || len(d.object.GetLabels()) > 0 {
		return nil
	}
	for _, one := range d.object.GetManagedFields() {
		if one.Manager != k.options.Operator {
			return nil
		}
	}
	return k.options.Client.Delete(ctx, d.object, client.Preconditions{
		UID: ptr.To(d.object.GetUID()), ResourceVersion: ptr.To(d.object.GetResourceVersion()),
	})
}
