package program

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// cacheLimits describes how the cache of a project's manager is restricted, as far as that can be detected. The
// operator has its own caches, which ignore these restrictions.
type cacheLimits struct {
	namespaces  []string                  // Cache.DefaultNamespaces; nil means all
	hasSelector bool                      // Cache.DefaultLabelSelector or DefaultFieldSelector
	kinds       []schema.GroupVersionKind // kinds of Cache.ByObject with namespaces or selectors
}

// readCacheLimits reads the restrictions of a cache by reflection, because the caches of controller-runtime do not
// export their options. Observing them through reads would need an API server and a started cache. For caches of other
// types, or if controller-runtime renames its fields, the result is empty.
func readCacheLimits(given any) (limits cacheLimits) {
	cache := reflect.ValueOf(given)
	// With Cache.ByObject, the cache delegates to one cache for each of these kinds, and to a default cache.
	if byKind := fieldOfKind(cache, "caches", reflect.Map); byKind.IsValid() {
		for _, key := range byKind.MapKeys() {
			own := readUniformLimits(byKind.MapIndex(key))
			if own.namespaces == nil && !own.hasSelector {
				continue
			}
			limits.kinds = append(limits.kinds, schema.GroupVersionKind{
				Group: textOf(key, "Group"), Version: textOf(key, "Version"), Kind: textOf(key, "Kind"),
			})
		}
		// Maps have no order, but warnings should be the same after each start.
		slices.SortFunc(limits.kinds, func(a, b schema.GroupVersionKind) int {
			return cmp.Compare(a.String(), b.String())
		})
		cache = fieldOfKind(cache, "defaultCache", reflect.Interface)
	}
	all := readUniformLimits(cache)
	limits.namespaces, limits.hasSelector = all.namespaces, all.hasSelector
	return limits
}

// readUniformLimits returns the restrictions of a cache that has the same ones for all of its kinds.
func readUniformLimits(cache reflect.Value) (limits cacheLimits) {
	byNamespace := fieldOfKind(cache, "namespaceToCache", reflect.Map)
	// Without namespaces, this is an informer cache, which has the selectors itself.
	if !byNamespace.IsValid() {
		selector := fieldOfKind(fieldOfKind(cache, "Informers", reflect.Pointer), "selector", reflect.Struct)
		limits.hasSelector = isFieldSet(selector, "Label") || isFieldSet(selector, "Field")
		return limits
	}
	// A cache of several namespaces has one cache for each.
	for _, key := range byNamespace.MapKeys() {
		if key.Kind() == reflect.String && key.String() == "" {
			return cacheLimits{} // all namespaces, with other options for some
		}
		limits.namespaces = append(limits.namespaces, key.String())
	}
	slices.Sort(limits.namespaces)
	return limits
}

// fieldOfKind returns a field of a struct, to which pointers and interfaces may lead. It returns an invalid value if
// there is no such field of this kind.
func fieldOfKind(v reflect.Value, name string, kind reflect.Kind) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		if field := v.FieldByName(name); field.Kind() == kind {
			return field
		}
	}
	return reflect.Value{}
}

// isFieldSet reports whether the struct has a field of an interface type that is not nil.
func isFieldSet(v reflect.Value, name string) bool {
	field := fieldOfKind(v, name, reflect.Interface)
	return field.IsValid() && !field.IsNil()
}

// textOf returns the text of a field. For a missing field, reflect returns "<invalid Value>" instead of panicking.
func textOf(v reflect.Value, name string) string {
	return fieldOfKind(v, name, reflect.String).String()
}

// WarnOfCache logs the restrictions of the project's cache that do not apply to handlers, with the settings to use
// instead. Users expect them to apply, because the operator runs in this manager.
func WarnOfCache(m ctrl.Manager, operator string, served namespaces.Patterns, plan []reconcilers.Registration) {
	limits := readCacheLimits(m.GetCache())
	log := m.GetLogger().WithValues("operator", operator)
	// With Settings.Namespaces, the user has already decided which namespaces are served.
	if limits.namespaces != nil && len(served) == 0 {
		logging.Warn(log, "Cache.DefaultNamespaces of the manager does not apply to handlers, which serve all "+
			"namespaces: give the namespaces to kopf.New as Settings.Namespaces", "namespaces", limits.namespaces)
	}
	if limits.hasSelector {
		logging.Warn(log, "The default selectors of the manager's cache do not apply to handlers: narrow their "+
			"selections down by MatchingLabels")
	}
	// Kinds that no handler can select do not matter.
	for _, kind := range limits.kinds {
		if slices.ContainsFunc(plan, func(r reconcilers.Registration) bool {
			return r.Selector.MayMean(discovery.OfKind(kind))
		}) {
			logging.Warn(log, "Cache.ByObject of the manager does not apply to handlers: narrow their selection "+
				"of the kind down by MatchingLabels or When, and give namespaces to kopf.New as Settings.Namespaces",
				"kind", kind.String())
		}
	}
}

// CheckCachedReads returns an error for each object of CachedReads that does not name a kind.
func CheckCachedReads(objects []client.Object, scheme *runtime.Scheme) (problems []error) {
	for i, object := range objects {
		if err := checkCachedKind(object, scheme); err != nil {
			problems = append(problems, fmt.Errorf("CachedReads[%d]: %w", i, err))
		}
	}
	return problems
}

// checkCachedKind returns an error that explains how to name the kind of the object.
func checkCachedKind(object client.Object, scheme *runtime.Scheme) error {
	if object == nil {
		return errors.New("the object is nil: give an empty one of the kind, such as &corev1.Secret{}")
	}
	_, err := apiutil.GVKForObject(object, scheme)
	switch {
	case runtime.IsNotRegisteredError(err):
		// The usual mistake is a missing AddToScheme.
		return fmt.Errorf(
			"the scheme does not know %T: give the AddToScheme of its package to Settings.AddToScheme", object,
		)
	case err != nil:
		return fmt.Errorf("an object of the type %T without apiVersion and kind names no kind: %w", object, err)
	}
	return nil
}
