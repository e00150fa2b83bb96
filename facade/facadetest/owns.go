package facadetest

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// unwatchedMessage is in the error of a wait for what nobody watches.
const unwatchedMessage = "are not watched: register kopf.Owns"

var errUnwatched = errors.New("facadetest: if the operator does so, pass facadetest.Owns with the kind to NewChange")

// own registers the kinds of children.
func (t *trial[T]) own(selection kopf.Selection[T]) {
	if t.wishes.has(optOwns) && t.wishes.client == nil {
		mistake("%s: Owns says which children are watched, and Client has them: pass both", t.by)
	}
	for _, kind := range t.ownedKinds() {
		kopf.Owns(selection, emptyOf(kind))
	}
}

func (t *trial[T]) ownedKinds() (all []schema.GroupVersionKind) {
	for _, child := range t.wishes.owns {
		if child == nil {
			mistake("%s: Owns: a kind is nil: give an empty object of it, such as &appsv1.Deployment{}", t.by)
		}
		kind := kindOf(t.by+": Owns", child, t.wishes.client.Scheme())
		if kind.Group == unknownGroup {
			mistake("%s: Owns: the scheme of the client does not know a %T: add it there", t.by, child)
		}
		all = append(all, kind)
	}
	return all
}

// emptyOf is what kopf.Owns is given.
func emptyOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	return empty
}

// unwatched is what a test has forgotten, or the operator.
func unwatched(err error) error {
	if err == nil || !strings.Contains(err.Error(), unwatchedMessage) {
		return nil
	}
	return errUnwatched
}
