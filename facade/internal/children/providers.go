package children

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Some children provide what others need: a CustomResourceDefinition the kind of its objects, a Namespace the place of
// its objects.

func (i identity) isDefinition() bool {
	return i.group == "apiextensions.k8s.io" && i.kind == "CustomResourceDefinition"
}

func (i identity) isNamespace() bool { return i.group == corev1.GroupName && i.kind == "Namespace" }

// provides is true if the other child cannot be there before this one. The name of a definition ends with the group.
func (i identity) provides(other identity) bool {
	return i.isDefinition() && strings.HasSuffix(i.name, "."+other.group) ||
		i.isNamespace() && i.name == other.namespace
}

// providersFirst sorts the children as they are to be applied, and otherwise leaves them in their order.
func providersFirst(all []declared) []declared {
	slices.SortStableFunc(all, func(a, b declared) int { return a.rank() - b.rank() })
	return all
}

func (i identity) rank() int {
	if i.isDefinition() || i.isNamespace() {
		return 0
	}
	return 1
}

// providers returns the definitions and namespaces that a parent declares, in this call or before. They are collected
// when the first child fails: the records of a parent may list thousands of children, and as many may fail.
type providers func() []identity

func (k *Keeper) providers(parent map[string]any, all []declared) providers {
	return sync.OnceValue(func() (some []identity) {
		for _, one := range all {
			if one := identityOf(one.object); one.rank() == 0 {
				some = append(some, one)
			}
		}
		before, _ := recordedAll(parent, k.isRecord) // another function reports unreadable records
		for _, known := range []set{before, union(k.memory.proven(uidOf(parent)))} {
			for one := range known {
				if one.rank() == 0 {
					some = append(some, one)
				}
			}
		}
		return some
	})
}

// awaited makes the error of a child temporary if the child only lacks a definition or namespace that the parent
// declares: the API server serves a new kind after a moment.
func (p providers) awaited(child declared, err error) error {
	if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return err
	}
	if slices.ContainsFunc(p(), func(one identity) bool { return one.provides(child.identity) }) {
		return &waitError{err}
	}
	return err
}
