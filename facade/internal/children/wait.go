package children

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// WaitResult is the result of a wait for an object.
type WaitResult struct {
	// Description names the awaited object for messages.
	Description string
	// IsSatisfied is true if the object satisfies the condition, Found if it exists.
	IsSatisfied, Exists bool
	// Pending ends the attempt until the object changes; nil if the timeout has passed.
	Pending *execution.PendingError
}

// EvaluateWait checks whether the awaited object satisfies its condition. The timeout starts with the first wait for
// the same object. That time is stored on the parent, so restarts do not extend the wait.
func (k *Keeper) EvaluateWait(
	w owned.ChildWait, namespace string, former progress.Wait, timeout time.Duration,
) (WaitResult, error) {
	// Stored times have microseconds, so the current time is truncated for the comparison.
	name, now := waitName(w, namespace), time.Now().UTC().Truncate(time.Microsecond)
	a, until := WaitResult{Description: "child " + name}, now.Add(timeout)
	if w.AllowAnyObject {
		a.Description = name
	}
	// A former wait for another object does not count. A shorter timeout in a new version of the handler takes effect
	// at once.
	if former.Child == name && former.Until.Before(until) {
		until = former.Until
	}
	var err error
	a.Exists, a.IsSatisfied, err = k.OwnedChildren.StartWait(w)
	if err == nil && !a.IsSatisfied && until.After(now) {
		a.Pending = &execution.PendingError{Wait: progress.Wait{Child: name, Until: until}, Delay: until.Sub(now)}
	}
	return a, err
}

// CheckWait returns an error for invalid arguments of a wait. Aimless means that the condition is nil.
func CheckWait(child client.Object, aimless bool, timeout time.Duration) error {
	given := reflect.ValueOf(child)
	switch {
	case given.Kind() != reflect.Pointer || given.IsNil():
		return errors.New("the child is nil: give an object with its name")
	case child.GetName() == "":
		return fmt.Errorf("the %T has no name: give it the one of the child", child)
	case aimless:
		return errors.New("the function is nil: without a condition, use one that is always true")
	}
	return defaults.CheckPositive("timeout", timeout)
}

// ExampleExpression returns a Go expression for a child of this type, for error messages.
func ExampleExpression(child client.Object) string {
	if _, raw := child.(*unstructured.Unstructured); raw {
		return "child"
	}
	return "&" + reflect.TypeOf(child).Elem().String() + "{}"
}

// waitName names the awaited object in messages and in the stored wait. The namespace is omitted if it is that of the
// parent. The name is persistent, so its form must not change.
func waitName(w owned.ChildWait, namespace string) string {
	if w.Namespace == namespace {
		return w.Kind.String() + " " + w.Name
	}
	return w.Kind.String() + " " + w.Namespace + "/" + w.Name
}
