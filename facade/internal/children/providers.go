package children

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Some children are providers of others: a CustomResourceDefinition provides a kind, and a Namespace provides the place
// of the objects in it. Providers must be applied first.

// isDefinition reports whether the child is a CustomResourceDefinition, which provides the kind of other children.
func (i identity) isDefinition() bool {
	return i.group == "apiextensions.k8s.io" && i.kind == "CustomResourceDefinition"
}

// isNamespace reports whether the child is a Namespace, which provides the place of other children.
func (i identity) isNamespace() bool { return i.group == corev1.GroupName && i.kind == "Namespace" }

// provides reports whether the other child cannot exist before this one. The name of a definition is
// "<plural>.<group>", so only the group is compared: the plural of the other child's kind is not known before the
// definition exists.
func (i identity) provides(other identity) bool {
	return i.isDefinition() && strings.HasSuffix(i.name, "."+other.group) ||
		i.isNamespace() && i.name == other.namespace
}

// providersFirst moves definitions and namespaces to the front, in place. Otherwise, the order of the handler is kept.
func providersFirst(all []declaredChild) []declaredChild {
	slices.SortStableFunc(all, func(a, b declaredChild) int { return a.applyRank() - b.applyRank() })
	return all
}

// applyRank is the sort key for providersFirst.
func (i identity) applyRank() int {
	if i.isDefinition() || i.isNamespace() {
		return 0
	}
	return 1
}

// providers returns the definitions and namespaces that the parent declares, in this call or in an earlier one. They
// are collected only when the first child fails: a parent's records may list thousands of children, and as many may
// fail.
type providers func() []identity

// providersOf returns a function that collects the providers once and caches them.
func (k *Keeper) providersOf(parent map[string]any, all []declaredChild) providers {
	return sync.OnceValue(func() (some []identity) {
		for _, one := range all {
			// The identity of the declaration is not set before the child is marked.
			if one := identityOf(one.object); one.applyRank() == 0 {
				some = append(some, one)
			}
		}
		before, _ := readAllChildren(parent, k.isRecord) // the pass reports unreadable records
		for _, known := range []childSet{before, unionOf(k.memory.provenRecords(uidOf(parent)))} {
			for one := range known {
				if one.applyRank() == 0 {
					some = append(some, one)
				}
			}
		}
		return some
	})
}

// retryIfAwaited makes the error of a child temporary if the child only lacks a definition or namespace that the parent
// declares. The API server serves a new kind only some time after its definition was created.
func (p providers) retryIfAwaited(child declaredChild, err error) error {
	if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return err
	}
	if slices.ContainsFunc(p(), func(one identity) bool { return one.provides(child.identity) }) {
		return &waitError{err}
	}
	return err
}
