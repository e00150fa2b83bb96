package configurations

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// removeTransientEntries removes the entries that are not persistent when the process exits. It keeps them if another
// process of the operator has written them, or takes over after this process has announced its exit.
func (w *Writer) removeTransientEntries(ctx context.Context) error {
	// The context has ended, but the cleanup must still reach the API server.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout+w.options.HandOver)
	defer cancel()
	// First, give a successor the time to take over, so that requests are reviewed without a gap.
	if w.options.HandOver > 0 && !w.options.Form.AsKopf && w.announceExit(ctx) {
		w.awaitSuccessor(ctx)
	}
	// Then, remove the entries that no other process took over.
	err := w.forEachObject(func(object *managedObject) error {
		persistent, _, err := w.wantedEntries(object, true)
		// An object that this process has never written is not its own.
		if err != nil || object.writtenVersion == 0 {
			return err
		}
		return object.keepOnlyPersistent(ctx, persistent)
	})
	// The process exits anyway, so an error is only logged.
	if err != nil {
		logf.FromContext(ctx).Error(err, "Failed to clean up a webhook configuration; its entries stay")
	}
	return nil
}

// announceExit marks the objects that this process wrote last as being left. It reports whether there are any.
func (w *Writer) announceExit(ctx context.Context) bool {
	isLast := false
	for _, object := range w.objects {
		entries, _, err := w.wantedEntries(object, false)
		if err != nil {
			continue
		}
		// Only the mark changes: requests are still sent to this process.
		m := mark{LastWriter: w.options.Identity, StartTime: w.options.StartTime, IsExiting: true}
		found, err := object.replaceIfLast(ctx, entries, m)
		if isLast = isLast || found; err != nil {
			logf.FromContext(ctx).Error(err, "Failed to announce in a webhook configuration that the process exits")
		}
	}
	return isLast
}

// awaitSuccessor blocks until other processes have taken over both objects, or the time for that is over. The entries
// stay valid meanwhile, so this process must still serve.
func (w *Writer) awaitSuccessor(ctx context.Context) {
	over := time.After(w.options.HandOver)
	for w.isLastWriter(ctx) {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-w.checkRequests:
		}
	}
}

// isLastWriter reports whether this process is the last writer of an object, or if that is unknown.
func (w *Writer) isLastWriter(ctx context.Context) bool {
	for _, object := range w.objects {
		d, err := object.readObject(ctx)
		// After an error, waiting is the safe choice.
		if err != nil || d.readMark().LastWriter == w.options.Identity {
			return true
		}
	}
	return false
}

// keepOnlyPersistent removes all entries except for the persistent ones.
func (k *managedObject) keepOnlyPersistent(ctx context.Context, persistent []any) error {
	if k.options.Form.AsKopf {
		return k.patchEntries(ctx, persistent)
	}
	_, err := k.replaceIfLast(ctx, persistent, mark{})
	return err
}

// replaceIfLast applies the entries and the mark if this process was the last writer of the object. It reports whether
// it was.
func (k *managedObject) replaceIfLast(ctx context.Context, entries []any, m mark) (isLast bool, err error) {
	if k.writtenVersion == 0 {
		return false, nil
	}
	err = k.editObject(ctx, func(d document) error {
		// Checked for each attempt, because the conflict may be with a successor.
		if isLast = d.readMark().LastWriter == k.options.Identity; !isLast {
			return nil
		}
		return k.applyEntries(ctx, d, entries, m)
	})
	return isLast, err
}
