package reviews

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// reviewedNamespaces returns the namespaces whose objects are reviewed. By default, this excludes the operator's own
// namespace: while the operator is down, its webhooks would reject the objects that start it.
func (a *ReviewSettings) reviewedNamespaces(served defaults.NamespaceScope, asKopf bool) *namespaces.NamespaceRule {
	scope := &namespaces.NamespaceRule{Served: served.ServedPatterns(), NamedOnly: served.NamedOnly}
	for _, text := range a.ExcludedNamespaces {
		scope.Excluded = append(scope.Excluded, namespaces.ParsePattern(text))
	}
	// A nil list means the default. An empty list means that no namespace is excluded.
	own := a.operatorNamespace()
	// A namespace that the user names explicitly is reviewed. With Kopf's formats, all are, as in Kopf.
	isNamed := slices.Contains(served.Names, own)
	if a.ExcludedNamespaces == nil && own != "" && !isNamed && !asKopf {
		scope.Excluded = namespaces.Patterns{namespaces.ParsePattern(own)}
	}
	return scope
}

// operatorNamespace returns the namespace in which the operator runs: that of its Service, or of the pod. It returns ""
// outside of a cluster.
func (a *ReviewSettings) operatorNamespace() string {
	if service, _, err := a.parseService(); err == nil && service.Namespace != "" {
		return service.Namespace
	}
	return credentials.PodNamespace()
}

// ownWrites describes the annotations and the finalizer that the operator writes with these settings. It only covers
// the storages of this framework, because storages of the user's code may write anything.
func ownWrites(p defaults.Persistence) *review.OwnWrites {
	// Storages can have prefixes that differ from the general one.
	prefixes := slices.Concat([]string{p.AnnotationPrefix}, diffbasePrefixes(p.DiffbaseStorage),
		progressPrefixes(p.ProgressStorage))
	// The prefixes become a condition of webhook entries. A stable order avoids needless updates.
	slices.Sort(prefixes)
	// The user is added later, because it is only known at run time.
	return &review.OwnWrites{Prefixes: slices.Compact(prefixes), Finalizer: p.Finalizer}
}

// diffbasePrefixes returns the prefixes of annotations with last-handled configurations.
func diffbasePrefixes(of diffbase.Storage) (prefixes []string) {
	switch of := of.(type) {
	case diffbase.Annotations:
		return []string{cmp.Or(of.Prefix, keys.KopfPrefix)}
	case diffbase.Multi:
		// A storage can combine others, also for a migration between prefixes.
		for _, one := range of {
			prefixes = append(prefixes, diffbasePrefixes(one)...)
		}
	}
	return prefixes
}

// progressPrefixes returns the prefixes of annotations with records.
func progressPrefixes(of progress.Storage) (prefixes []string) {
	switch of := of.(type) {
	case progress.Annotations:
		// Storages in the status do not have a prefix.
		return []string{cmp.Or(of.Prefix, keys.KopfPrefix)}
	case progress.Smart:
		return []string{cmp.Or(of.Prefix, keys.KopfPrefix)}
	case progress.Multi:
		for _, one := range of {
			prefixes = append(prefixes, progressPrefixes(one)...)
		}
	}
	return prefixes
}

// ReviewedObjects maps the objects that admission handlers currently review to their requests. The keys are pointers.
// Memo uses it, because an object under review may never be stored, and a new one does not have a UID.
type ReviewedObjects struct{ requests sync.Map } // the values are *handlers.AdmissionRequest

// BeginReview adds the objects of a request. The returned function removes them. Both run for each request, and
// requests are concurrent.
func (r *ReviewedObjects) BeginReview(of *handlers.AdmissionRequest, objects ...client.Object) (end func()) {
	for _, object := range objects {
		r.requests.Store(object, of)
	}
	return func() {
		for _, object := range objects {
			r.requests.Delete(object)
		}
	}
}

// RequestOf returns the request in which the object is under review, or nil.
func (r *ReviewedObjects) RequestOf(object client.Object) *handlers.AdmissionRequest {
	// A value that is not a pointer may not be comparable, and would panic as a key.
	if reflect.TypeOf(object).Kind() != reflect.Pointer {
		return nil
	}
	known, _ := r.requests.Load(object)
	request, _ := known.(*handlers.AdmissionRequest)
	return request
}
