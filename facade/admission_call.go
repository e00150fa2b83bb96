package kopf

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// decodeObjects decodes the objects into T. A requested object must decode. In a stored object, fields that do not fit
// are dropped: the object could not be deleted or repaired otherwise.
func (a *Admission[T]) decodeObjects() (err error) {
	asked := a.call.Admission
	a.Object, err = a.codec.DecodeFrom(a.call.EncodedObject, a.rawObject)
	// Without a requested object, Given is the stored object.
	if err != nil && asked.Object != nil {
		return err
	}
	if !a.HasOld {
		a.Old, err = a.codec.DecodeOld(nil)
		return err
	}
	var wrong error
	a.Old, wrong = a.codec.DecodeFrom(asked.Old, asked.Old.Value)
	if err = errors.Join(err, wrong); err != nil {
		a.log.V(1).Info("The old object does not decode into the type; Old is incomplete",
			"type", fmt.Sprintf("%T", a.Old), "error", err.Error())
	}
	return nil
}

// checkKind rejects objects of a subresource with its own kind, such as a Scale. Decoded into T, such an object would
// lose most of its fields without an error.
func (a *Admission[T]) checkKind() error {
	if _, dynamic := any(a.Object).(*Unstructured); dynamic || a.Subresource == "" {
		return nil
	}
	object, err := a.rawObject()
	if err != nil {
		return err
	}
	given := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
	if given.Empty() || given == a.call.Resource.GroupVersionKind {
		return nil
	}
	return fmt.Errorf("handler %q cannot be asked about a %s of %s, as its objects are of another Go type: use "+
		"kopf.ForSubresource, or kopf.ForResource", a.ID, given.Kind, given.GroupVersion())
}

// maxCheckedBytes is the size of the largest object, in bytes of JSON, that is compared after a validating handler. The
// comparison keeps another copy and decodes the object again, which a warning is not worth for larger objects.
const maxCheckedBytes = 256 << 10

// recordOriginal keeps the object as it is before the call, to find the changes of the handler afterwards.
func (a *Admission[T]) recordOriginal() (err error) {
	if a.isMutating {
		a.encodedBefore, err = a.codec.JSONText(a.Object)
	} else if len(a.call.Admission.ReviewedObject().Text()) <= maxCheckedBytes && a.mistakes.shouldCheckCall() {
		a.original = a.codec.NewOriginal(a.Object)
	}
	return err
}

var (
	errNotMutating = errors.New("a validating handler cannot change the object: register it with Mutate")
	errNoObject    = errors.New("a deletion has no object that could be changed: only deny it, or allow it")
)

// Patch changes a.Object. It is an error in validating handlers and for deletions.
func (a *Admission[T]) Patch(change func(object T)) {
	a.TryPatch(func(object T) error { change(object); return nil })
}

// TryPatch is Patch with a function that can fail; then a.Object is unchanged, and the request is denied.
func (a *Admission[T]) TryPatch(change func(object T) error) {
	a.runLocked(func() error {
		if err := a.checkChangeable(); err != nil {
			return fmt.Errorf("patching the object by handler %q: %w", a.ID, err)
		}
		// The function changes a copy, so that a.Object is unchanged if it fails.
		var tried T
		err := codec.Call(func() error { tried = a.codec.Copy(a.Object); return change(tried) })
		if err != nil {
			return fmt.Errorf("patching the object by handler %q: %w", a.ID, err)
		}
		a.codec.ReplaceContent(a.Object, tried)
		return nil
	})
}

// checkChangeable returns an error if the handler cannot change the object.
func (a *Admission[T]) checkChangeable() error {
	switch {
	case a.call.Writer == nil:
		return errReadOnly
	case !a.isMutating:
		return errNotMutating
	case a.call.Admission.Object == nil:
		return errNoObject
	default:
		return nil
	}
}

// finishCall finishes the call after the function has returned: it rejects later method calls, joins the errors of
// earlier ones with err, and saves the changes of a mutating handler.
func (a *Admission[T]) finishCall(err error) error {
	a.lock()
	defer a.mu.Unlock()
	if err = a.end(err); err != nil {
		return err
	}
	if a.isMutating {
		return a.rememberEdits()
	}
	if a.original == nil {
		return nil
	}
	fields := a.original.LostFields(a.rawObject)
	if len(fields) == 0 {
		return nil
	}
	// A validating handler cannot change the object. Warn once if it has tried to.
	a.call.ReportLostFields(fields)
	if a.mistakes.inPlaceChange.CompareAndSwap(false, true) {
		logging.Warn(a.log, "Validating handler changed its copy of the object, which is stored nowhere; logged once "+
			"for the handler", "fields", fields, "instead", "Mutate")
	}
	return nil
}

// rememberEdits turns all changes to a.Object into one change of the raw object, which may have fields that T lacks.
func (a *Admission[T]) rememberEdits() error {
	// The handler may have replaced the field, not only the object that it points to.
	if object := reflect.ValueOf(a.Object); !object.IsValid() || object.IsNil() {
		return fmt.Errorf("handler %q has set the object to nil", a.ID)
	}
	// Edits returns nil if the handler has changed nothing.
	edits, err := a.codec.EditTransform(
		a.encodedBefore, a.Object, a.keys.listRules(a.call.Resource, a.mistakes, a.log))
	if err != nil || edits == nil {
		return err
	}
	// Check this last: a handler for deletions is valid as long as it does not change the object.
	if err := a.checkChangeable(); err != nil {
		return fmt.Errorf("changing the object by handler %q: %w", a.ID, err)
	}
	return a.call.Writer.AddTransform(patching.GuardFinalizers(a.finalizer, edits))
}
