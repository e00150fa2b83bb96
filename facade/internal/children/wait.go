package children

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Awaited is the outcome of a wait.
type Awaited struct {
	// Described names the awaited object for messages.
	Described string
	// Reached is true if the object is as wanted, Found if it exists.
	Reached, Found bool
	// Pending ends the attempt until the object changes; nil if the time is over.
	Pending *execution.PendingError
}

// Await looks at the awaited object. The timeout counts from the former wait for the same object, which is stored.
func (k *Keeper) Await(w owned.Wait, namespace string, former progress.Wait, timeout time.Duration) (Awaited, error) {
	name, now := waitName(w, namespace), time.Now().UTC().Truncate(time.Microsecond)
	a, until := Awaited{Described: "child " + name}, now.Add(timeout)
	if w.Any {
		a.Described = name
	}
	if former.Child == name && former.Until.Before(until) {
		until = former.Until
	}
	var err error
	a.Found, a.Reached, err = k.Owned.Await(w)
	if err == nil && !a.Reached && until.After(now) {
		a.Pending = &execution.PendingError{Awaited: progress.Wait{Child: name, Until: until}, Delay: until.Sub(now)}
	}
	return a, err
}

// CheckWait returns an error for invalid arguments of a wait.
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

// Example returns the expression that gives the kind of a child.
func Example(child client.Object) string {
	if _, raw := child.(*unstructured.Unstructured); raw {
		return "child"
	}
	return "&" + reflect.TypeOf(child).Elem().String() + "{}"
}

// waitName names a child among those of one object. The name is stored on the object.
func waitName(w owned.Wait, namespace string) string {
	if w.Namespace == namespace {
		return w.Kind.String() + " " + w.Name
	}
	return w.Kind.String() + " " + w.Namespace + "/" + w.Name
}
