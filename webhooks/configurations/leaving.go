package configurations

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// leave takes the entries away that are not persistent, unless another process of the operator has written, or does so
// when it is told that this one leaves.
func (w *Writer) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout+w.options.HandOver)
	defer cancel()
	if w.options.HandOver > 0 && !w.options.Form.AsKopf && w.announce(ctx) {
		w.awaitOthers(ctx)
	}
	var failed []error
	for _, object := range w.objects {
		persistent, version, err := w.wanted(object, true)
		if err == nil && version > 0 && object.written > 0 {
			err = object.clear(ctx, persistent)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %q: %w", object.kind.Kind, w.options.Name, err))
		}
	}
	if err := errors.Join(failed...); err != nil {
		logf.FromContext(ctx).Error(err, "Failed to clean up a webhook configuration; its entries stay")
	}
	return nil
}

// announce says in the objects that this process leaves, and tells whether it said so in any.
func (w *Writer) announce(ctx context.Context) bool {
	said := false
	for _, object := range w.objects {
		err := object.edit(ctx, func(d document) error {
			said = true
			m := d.mark()
			m.Leaving = true
			return d.say(m)
		})
		if err != nil {
			logf.FromContext(ctx).Error(err, "Failed to announce in a webhook configuration that the process exits")
		}
	}
	return said
}

// awaitOthers returns when others have taken both objects over, or the time for that is over.
func (w *Writer) awaitOthers(ctx context.Context) {
	over := time.After(w.options.HandOver)
	for w.isMine(ctx) {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-w.news:
		}
	}
}

// isMine tells whether this process is the last writer of an object.
func (w *Writer) isMine(ctx context.Context) bool {
	for _, object := range w.objects {
		d, err := object.read(ctx)
		if err != nil || d.mark().Writer == w.options.Identity {
			return true
		}
	}
	return false
}

// clear leaves the persistent entries alone.
func (k *kept) clear(ctx context.Context, persistent []any) error {
	if k.options.Form.AsKopf {
		return k.patch(ctx, persistent)
	}
	return k.edit(ctx, func(d document) error { return d.write(persistent, mark{}) })
}

// edit changes the object, if this process is its last writer.
func (k *kept) edit(ctx context.Context, how func(d document) error) error {
	if k.written == 0 {
		return nil
	}
	var err error
	for range attempts {
		var d document
		if d, err = k.read(ctx); err != nil {
			return err
		}
		if d.mark().Writer != k.options.Identity {
			return nil
		}
		if err = how(d); err != nil {
			return err
		}
		if err = k.send(ctx, d); !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return err
}
