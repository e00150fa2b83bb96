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
	// written is the version of what was written last; left are the entries as the API server has them since then.
	written int
	left    []any
}

// keep writes the entries if that is due.
func (k *kept) keep(ctx context.Context, wanted []any, version int) error {
	if k.options.Form.AsKopf {
		return k.keepAsKopf(ctx, wanted, version)
	}
	var err error
	for range attempts {
		var d document
		if d, err = k.read(ctx); err != nil {
			return err
		}
		if !k.isDue(d, wanted, version) {
			return nil
		}
		isWithdrawn := k.writer.isWithdrawn()
		if len(wanted) == 0 && !d.isMarked() && !(isWithdrawn && len(d.records()) > 0) {
			k.written, k.left = version, nil
			return nil // there is nothing to say, and nothing was said
		}
		if isWithdrawn {
			d.setRecords(nil)
		}
		if err = d.write(wanted, mark{Writer: k.options.Identity, Started: k.options.Started}); err != nil {
			return err
		}
		if err = k.send(ctx, d); err == nil {
			logf.FromContext(ctx).Info("Wrote a webhook configuration", "kind", k.kind.Kind, "name", k.options.Name,
				"entries", len(wanted))
			k.written, k.left = version, d.own(wanted)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return explained(err, k.written > 0)
}

// isDue tells whether the entries are to be written: they are new here, nobody feels responsible for them any more, an
// older process has written its own, or somebody has changed those of this process.
func (k *kept) isDue(d document, wanted []any, version int) bool {
	m := d.mark()
	switch {
	case version != k.written || m.Writer == "":
		return true
	case m.Writer == k.options.Identity:
		return m.Leaving || !equal(d.own(wanted), k.left, k.writer.foreignBundles())
	default:
		return m.Leaving || k.writer.older(m)
	}
}

// read gives the object as it is, or a new one that has no version yet.
func (k *kept) read(ctx context.Context) (document, error) {
	d := newDocument(k.kind, k.options.Name, k.options.Operator+"/webhooks")
	err := k.options.Client.Get(ctx, client.ObjectKey{Name: k.options.Name}, d.object)
	if apierrors.IsNotFound(err) {
		return newDocument(k.kind, k.options.Name, d.annotation), nil
	}
	return d, explained(err, k.written > 0)
}

// send creates or updates the object, which has the answer of the API server then.
func (k *kept) send(ctx context.Context, d document) error {
	owner := client.FieldOwner(k.options.Operator)
	if d.object.GetResourceVersion() == "" {
		return k.options.Client.Create(ctx, d.object, owner)
	}
	return k.options.Client.Update(ctx, d.object, owner)
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
