package reconcilers_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestDyingObjectsKeepNoInterimMemory shows that an object that others hold during its deletion keeps only the
// last-handled configuration and the handled uid.
func TestDyingObjectsKeepNoInterimMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const kept = "handled-uid last-handled-configuration"
	alive := func(_ context.Context, c *cause.Cause) (bool, error) { return !c.Deleting, nil }
	tests := map[string]struct {
		reason string
		unfinished
		want string
	}{
		"Creation": {"an unfinished creation leaves nothing", unfinished{reason: cause.Create}, ""},
		"CreationDown": {
			"a creation that is unfinished at a restart leaves nothing",
			unfinished{reason: cause.Create, down: true},
			"",
		},
		"CreationHeld": {
			"an unfinished creation of a held object ends in a handled deletion",
			unfinished{reason: cause.Create, held: true}, kept,
		},
		"Update": {"an unfinished update leaves the last-handled configuration", unfinished{reason: cause.Update},
			kept},
		"UpdateDown": {
			"an update that is unfinished at a restart leaves the last-handled configuration",
			unfinished{reason: cause.Update, down: true}, kept,
		},
		"UpdateHeld": {
			"an unfinished update of a held object leaves the last-handled configuration",
			unfinished{reason: cause.Update, held: true, down: true}, kept,
		},
		"Unmatched": {
			"an object that stops matching the change handlers leaves the last-handled configuration",
			unfinished{reason: cause.Update, held: true, filter: alive}, kept,
		},
		"UnmatchedAll": {
			"an object that stops matching all handlers leaves the last-handled configuration",
			unfinished{reason: cause.Update, held: true, filter: alive, filtersBackground: true}, kept,
		},
	}
	for name, tc := range tests {
		for by, holder := range holdingHandlers() {
			t.Run(name+"/"+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if d := cmp.Diff(tc.want, tc.annotationsAfterDeletion(t, *holder)); d != "" {
						t.Errorf("%s: what is left: -want, +got:\n%s", tc.reason, d)
					}
				})
			})
		}
	}
}

// unfinished is a change that is not finished when the object is deleted.
type unfinished struct {
	reason            cause.Reason
	held              bool // by a background handler, too
	down              bool // during the deletion
	filter            handlers.Filter
	filtersBackground bool // the background handler has the filter, too
}

func (u unfinished) registrations(t *testing.T, holder handlers.Handler) []reconcilers.Registration {
	first := &handlers.Handler{ID: "a", Reason: u.reason, Call: succeed}
	second := &handlers.Handler{
		ID: "b", Reason: u.reason, Call: func(context.Context, *handlers.Invocation) error {
			return laterError{time.Hour}
		},
	}
	if u.filter != nil {
		first.Filters, second.Filters = []handlers.Filter{u.filter}, []handlers.Filter{u.filter}
	}
	all := []reconcilers.Registration{registrationFor(t, "configmaps", first), registrationFor(t, "configmaps", second)}
	if u.filtersBackground {
		holder.Filters = first.Filters
	}
	if u.held {
		all = append(all, registrationFor(t, "configmaps", &holder))
	}
	return all
}

// annotationsAfterDeletion returns the names of our annotations on an object that another client holds during its
// deletion.
func (u unfinished) annotationsAfterDeletion(t *testing.T, holder handlers.Handler) string {
	server := memapi.New()
	p := newDirectClient(t, server)
	p.create("ConfigMap", "c")
	p.merge("ConfigMap", "c", `{"data":{"k":"one"},"metadata":{"finalizers":["example.org/other"]}}`)
	start := func() func() {
		return operateAll(
			t,
			server,
			reconcilers.Options{Settings: reconcilers.Settings{BoundTo: ownPrefix + "handled-uid"}},
			u.registrations(t, holder)...)
	}
	stop := start()
	time.Sleep(10 * time.Second)
	p.merge("ConfigMap", "c", `{"data":{"k":"two"}}`)
	time.Sleep(10 * time.Second)
	if memory := memoryOf(p.get("ConfigMap", "c")); !strings.HasPrefix(
		memory, "a b handled-uid handling-configuration",
	) {
		t.Fatalf("there is no interim memory before the deletion: %s", memory)
	}
	if u.down {
		stop()
		p.remove("ConfigMap", "c")
		stop = start()
	} else {
		p.remove("ConfigMap", "c")
	}
	time.Sleep(10 * time.Second)
	before := p.get("ConfigMap", "c")
	p.merge("ConfigMap", "c", `{"data":{"k":"three"}}`)
	time.Sleep(10 * time.Second)
	stop()
	after := p.get("ConfigMap", "c")
	if d := cmp.Diff([]string{"example.org/other"}, after.GetFinalizers()); d != "" {
		t.Errorf("finalizers: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(memoryOf(before), memoryOf(after)); d != "" {
		t.Errorf("an edit of the object being deleted changed its annotations:\n-before, +after:\n%s", d)
	}
	return memoryOf(after)
}

// memoryOf returns the names of our annotations, without the mark of the prefix.
func memoryOf(object *unstructured.Unstructured) string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(object.GetAnnotations())) {
		if name, own := strings.CutPrefix(key, ownPrefix); own && name != "kopf-managed" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
