package configurations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// attempts is how many times a write is made that collides with those of others, before it waits.
const attempts = 10

// kept is one of the two objects.
type kept struct {
	writer  *Writer
	options Options
	kind    schema.GroupVersionKind
	// written is the version of the entries that were applied last, and applied the resource version of the object
	// since then.
	written int
	applied string
}

// keep applies the entries if that is due.
func (k *kept) keep(ctx context.Context, wanted []any, version int) error {
	if k.options.Form.AsKopf {
		return k.keepAsKopf(ctx, wanted, version)
	}
	return k.edit(ctx, func(d document) error {
		if !k.isDue(d, version) {
			return nil
		}
		if k.writer.isWithdrawn() && len(d.records()) > 0 {
			if err := k.setRecords(ctx, d, nil); err != nil {
				return err
			}
		}
		if len(wanted) > 0 || d.isMarked() {
			own := mark{Writer: k.options.Identity, Started: k.options.Started}
			if err := k.apply(ctx, d, wanted, own); err != nil {
				return err
			}
		}
		k.written = version
		return nil
	})
}

// isDue reports whether the entries are to be applied: they are new here, no process is responsible for them any more,
// an older process has written its own, or the object was changed by others, maybe in these entries.
func (k *kept) isDue(d document, version int) bool {
	m := d.mark()
	switch {
	case version != k.written || m.Writer == "":
		return true
	case m.Writer == k.options.Identity:
		return m.Leaving || d.object.GetResourceVersion() != k.applied
	default:
		return m.Leaving || k.writer.older(m)
	}
}

// edit reads the object and changes it. It starts again if others have changed the object meanwhile.
func (k *kept) edit(ctx context.Context, change func(d document) error) error {
	var err error
	for range attempts {
		var d document
		if d, err = k.read(ctx); err != nil {
			return err
		}
		err = change(d)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return explained(err, k.written > 0)
}

// read returns the object, or a new one without a version if the cluster does not have it.
func (k *kept) read(ctx context.Context) (document, error) {
	d := newDocument(k.kind, k.options.Name, k.options.Operator+"/webhooks")
	err := k.options.Client.Get(ctx, client.ObjectKey{Name: k.options.Name}, d.object)
	if apierrors.IsNotFound(err) {
		return newDocument(k.kind, k.options.Name, d.annotation), nil
	}
	return d, explained(err, k.written > 0)
}

// apply replaces the operator's entries and its mark. All of its processes are one field manager, so each of them names
// the state that it replaces: a process that writes meanwhile makes it a conflict.
func (k *kept) apply(ctx context.Context, d document, entries []any, m mark) error {
	former := d.object.GetResourceVersion()
	if err := k.claim(ctx, d, entries); err != nil {
		return err
	}
	declared := newDocument(k.kind, k.options.Name, d.annotation)
	declared.object.SetResourceVersion(d.object.GetResourceVersion())
	if err := declared.declare(entries, m); err != nil {
		return err
	}
	err := k.options.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(declared.object),
		client.FieldOwner(k.options.Operator), client.ForceOwnership)
	if err != nil {
		return err
	}
	if k.applied = declared.object.GetResourceVersion(); k.applied != former {
		logf.FromContext(ctx).Info("Wrote a webhook configuration", "kind", k.kind.Kind, "name", k.options.Name,
			"entries", len(entries))
	}
	return nil
}

// keepAsKopf replaces all entries that the object has when there are new ones here.
func (k *kept) keepAsKopf(ctx context.Context, wanted []any, version int) error {
	if version == k.written {
		return nil
	}
	d := newDocument(k.kind, k.options.Name, "")
	if k.written == 0 {
		err := k.options.Client.Create(ctx, d.object, client.FieldOwner(k.options.Operator))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return explained(err, false)
		}
	}
	if err := k.patch(ctx, wanted); err != nil {
		if apierrors.IsNotFound(err) {
			k.written = 0 // somebody has deleted it
		}
		return err
	}
	logf.FromContext(ctx).Info("Wrote a webhook configuration", "kind", k.kind.Kind, "name", k.options.Name,
		"entries", len(wanted))
	k.written = version
	return nil
}

// patch replaces all entries.
func (k *kept) patch(ctx context.Context, wanted []any) error {
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

// watch has the object looked at when it changes, until the context ends. Who may not watch looks at intervals.
func (k *kept) watch(ctx context.Context) {
	said := false
	for ctx.Err() == nil {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.kind)
		events, err := k.options.Client.Watch(ctx, list, &client.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", k.options.Name),
		})
		after := time.Second
		if err != nil && ctx.Err() == nil {
			after = lookInterval
			if !said {
				logging.Warn(logf.FromContext(ctx),
					"Cannot watch a webhook configuration; changes by others are found by looking at it",
					"kind", k.kind.Kind, "name", k.options.Name, "reason", err.Error(), "within", lookInterval.String())
			}
			said = true
		}
		if err == nil {
			for range events.ResultChan() {
				k.writer.look()
			}
			events.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
}
