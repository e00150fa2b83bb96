package reviews

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// scope returns the namespaces whose objects are reviewed. By default, the operator's own one is not among them: while
// the operator is down, its handlers would refuse the objects that start it.
func (a *ReviewSettings) scope(served defaults.NamespaceScope, asKopf bool) *namespaces.Scope {
	scope := &namespaces.Scope{Served: served.Patterns(), NamedOnly: served.NamedOnly}
	for _, text := range a.ExcludedNamespaces {
		scope.Excluded = append(scope.Excluded, namespaces.Parse(text))
	}
	own := a.ownNamespace()
	isNamed := slices.Contains(served.Names, own)
	if a.ExcludedNamespaces == nil && own != "" && !isNamed && !asKopf {
		scope.Excluded = namespaces.Patterns{namespaces.Parse(own)}
	}
	return scope
}

// ownNamespace is where the operator runs: that of its Service, or of the pod; empty outside of a cluster.
func (a *ReviewSettings) ownNamespace() string {
	if service, _, err := a.service(); err == nil && service.Namespace != "" {
		return service.Namespace
	}
	return connection.PodNamespace()
}

// ownWrites are the annotations and the finalizer that the operator writes by these settings. Storages of the user's
// own code may write anything, so only those of this framework are looked at.
func ownWrites(p defaults.Persistence) *review.OwnWrites {
	prefixes := slices.Concat([]string{p.AnnotationPrefix}, diffbasePrefixes(p.DiffbaseStorage),
		progressPrefixes(p.ProgressStorage))
	slices.Sort(prefixes)
	return &review.OwnWrites{Prefixes: slices.Compact(prefixes), Finalizer: p.Finalizer}
}

func diffbasePrefixes(of diffbase.Storage) (prefixes []string) {
	switch of := of.(type) {
	case diffbase.Annotations:
		return []string{cmp.Or(of.Prefix, keys.KopfPrefix)}
	case diffbase.Multi:
		for _, one := range of {
			prefixes = append(prefixes, diffbasePrefixes(one)...)
		}
	}
	return prefixes
}

func progressPrefixes(of progress.Storage) (prefixes []string) {
	switch of := of.(type) {
	case progress.Annotations:
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

// ReviewedObjects are the objects of the requests that handlers are reviewing, by their pointers: memos are made
// another way for them.
type ReviewedObjects struct {
	mu  sync.RWMutex
	all map[any]*handlers.Admission
}

// Begin adds the objects of a request; the returned function removes them.
func (r *ReviewedObjects) Begin(of *handlers.Admission, objects ...client.Object) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[any]*handlers.Admission{}
	}
	for _, object := range objects {
		r.all[object] = of
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, object := range objects {
			delete(r.all, object)
		}
	}
}

// Of is the request that the object is of; nil if it is of none.
func (r *ReviewedObjects) Of(object client.Object) *handlers.Admission {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.all) == 0 || reflect.TypeOf(object).Kind() != reflect.Pointer {
		return nil
	}
	return r.all[object]
}
