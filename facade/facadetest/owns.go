package facadetest

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// unwatchedMessage is a part of the error of kopf.WaitFor for a kind that the operator does not watch.
const unwatchedMessage = "are not watched: register Owns"

// errUnwatched is added to that error: in a test, the operator may watch the kind, and only the option is missing.
var errUnwatched = errors.New("facadetest: if the operator does so, pass facadetest.Owns with the kind to NewChange")

// registerChildKinds registers the kinds of the [Owns] and [Watches] options, as the operator does.
func (t *trial[T]) registerChildKinds(selection kopf.Selection[T]) {
	for _, name := range []string{optOwns, optWatches} {
		if t.options.isGiven(name) && t.options.client == nil {
			panicMisuse("%s: %s says which objects are watched, and Client has them: pass both", t.constructor, name)
		}
	}
	for _, kind := range t.watchedKinds(optOwns, t.options.owns) {
		selection.Owns(emptyObjectOf(kind))
	}
	for _, kind := range t.watchedKinds(optWatches, t.options.watches) {
		selection.Watches(emptyObjectOf(kind))
	}
}

// watchedKinds returns the kinds of the empty objects that an option has received. It panics for kinds that the client
// cannot list.
func (t *trial[T]) watchedKinds(by string, given []client.Object) (all []schema.GroupVersionKind) {
	for _, object := range given {
		if object == nil {
			panicMisuse("%s: %s: a kind is nil: give an empty object of it, such as &appsv1.Deployment{}",
				t.constructor, by)
		}
		kind := kindOf(t.constructor+": "+by, object, t.options.client.Scheme())
		if kind.Group == unknownGroup {
			panicMisuse("%s: %s: the scheme of the client does not know a %T: add it there", t.constructor, by, object)
		}
		all = append(all, kind)
	}
	return all
}

// emptyObjectOf returns the argument for Selection.Owns.
func emptyObjectOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	return empty
}

// unwatchedKindHint returns a hint for the test if the error is about an unwatched kind, else nil. The error has no
// exported value to compare with, so its text is searched.
func unwatchedKindHint(err error) error {
	if err == nil || !strings.Contains(err.Error(), unwatchedMessage) {
		return nil
	}
	return errUnwatched
}
