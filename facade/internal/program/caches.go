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

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// cacheLimits is how the cache of a project's manager is limited, as far as it shows. The operator has caches of its
// own, to which none of it applies.
type cacheLimits struct {
	namespaces  []string                  // Cache.DefaultNamespaces; nil is all
	hasSelector bool                      // Cache.DefaultLabelSelector or DefaultFieldSelector
	kinds       []schema.GroupVersionKind // of Cache.ByObject, with namespaces or selectors
}

// limitsOf reads the fields of controller-runtime's caches, which do not export their options: a read would need an API
// server, and a cache that has started. It finds nothing in caches of other types.
func limitsOf(given any) (limits cacheLimits) {
	cache := structOf(reflect.ValueOf(given))
	if byKind := fieldOf(cache, "caches", reflect.Map); byKind.IsValid() {
		for _, key := range byKind.MapKeys() {
			if own := limitsOfOne(structOf(byKind.MapIndex(key))); own.namespaces == nil && !own.hasSelector {
				continue
			}
			limits.kinds = append(limits.kinds, schema.GroupVersionKind{
				Group: textOf(key, "Group"), Version: textOf(key, "Version"), Kind: textOf(key, "Kind"),
			})
		}
		slices.SortFunc(limits.kinds, func(a, b schema.GroupVersionKind) int {
			return cmp.Compare(a.String(), b.String())
		})
		cache = structOf(fieldOf(cache, "defaultCache", reflect.Interface))
	}
	all := limitsOfOne(cache)
	limits.namespaces, limits.hasSelector = all.namespaces, all.hasSelector
	return limits
}

// limitsOfOne are those of a cache that is the same for all of its kinds.
func limitsOfOne(cache reflect.Value) (limits cacheLimits) {
	byNamespace := fieldOf(cache, "namespaceToCache", reflect.Map)
	if !byNamespace.IsValid() {
		selector := fieldOf(structOf(fieldOf(cache, "Informers", reflect.Pointer)), "selector", reflect.Struct)
		limits.hasSelector = isSet(selector, "Label") || isSet(selector, "Field")
		return limits
	}
	for _, key := range byNamespace.MapKeys() {
		if key.Kind() == reflect.String && key.String() == "" {
			return cacheLimits{} // all namespaces, with other options for some
		}
		limits.namespaces = append(limits.namespaces, key.String())
	}
	slices.Sort(limits.namespaces)
	return limits
}

// structOf is what pointers and interfaces lead to; invalid if it is not a struct.
func structOf(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v
}

func fieldOf(v reflect.Value, name string, kind reflect.Kind) reflect.Value {
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	if field := v.FieldByName(name); field.IsValid() && field.Kind() == kind {
		return field
	}
	return reflect.Value{}
}

func isSet(v reflect.Value, name string) bool {
	field := fieldOf(v, name, reflect.Interface)
	return field.IsValid() && !field.IsNil()
}

func textOf(v reflect.Value, name string) string { return fieldOf(v, name, reflect.String).String() }

// WarnOfCache logs the limits of the project's cache that do not hold for the handlers, and what to do about them.
func WarnOfCache(m ctrl.Manager, operator string, served namespaces.Patterns, plan []reconcilers.Registration) {
	limits := limitsOf(m.GetCache())
	log := m.GetLogger().WithValues("operator", operator)
	if limits.namespaces != nil && len(served) == 0 {
		logging.Warn(log, "Cache.DefaultNamespaces of the manager does not apply to handlers, which serve all "+
			"namespaces: give the namespaces to kopf.New as Settings.Namespaces", "namespaces", limits.namespaces)
	}
	if limits.hasSelector {
		logging.Warn(log, "The default selectors of the manager's cache do not apply to handlers: narrow their "+
			"selections down by MatchingLabels")
	}
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

// CheckCachedReads checks that each object of CachedReads names a kind.
func CheckCachedReads(objects []client.Object, scheme *runtime.Scheme) (problems []error) {
	for i, object := range objects {
		if err := checkKind(object, scheme); err != nil {
			problems = append(problems, fmt.Errorf("CachedReads[%d]: %w", i, err))
		}
	}
	return problems
}

func checkKind(object client.Object, scheme *runtime.Scheme) error {
	if object == nil {
		return errors.New("the object is nil: give an empty one of the kind, such as &corev1.Secret{}")
	}
	_, err := serving.CachedKind(object, scheme)
	switch {
	case runtime.IsNotRegisteredError(err):
		return fmt.Errorf(
			"the scheme does not know %T: give the AddToScheme of its package to Settings.AddToScheme", object,
		)
	case err != nil:
		return fmt.Errorf("an object of the type %T without apiVersion and kind names no kind: %w", object, err)
	}
	return nil
}
