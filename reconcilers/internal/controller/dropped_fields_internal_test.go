package controller

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestDroppedFieldsAreLoggedOnce shows that a field unknown to the schema of a CRD is logged once for each kind,
// however many objects have it.
func TestDroppedFieldsAreLoggedOnce(t *testing.T) {
	var logged []string
	log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	ctx := logf.IntoContext(t.Context(), log)
	deps := &Dependencies{Writer: patching.PatchWriter{Client: &api{}}}
	gadgets := widgets
	gadgets.Kind, gadgets.Plural = "Gadget", "gadgets"
	first := 0
	for n := range 2 {
		deps.writerFor(widgets).OnDropped(ctx, []diff.Path{{"status", "a"}, {"status", "b"}})
		deps.writerFor(gadgets).OnDropped(ctx, []diff.Path{{"status", "a"}})
		if n == 0 {
			first = len(logged)
		}
	}
	if len(logged) != 3 || first != 3 || !strings.Contains(logged[0], "status.a") ||
		!strings.Contains(logged[0], "Kind=Widget") {
		t.Errorf("want one line for each of three fields, got %q", logged)
	}
}

// TestWritersOfAResourceShareAClient shows that all writers of a resource share one client, and thus its rate limits.
func TestWritersOfAResourceShareAClient(t *testing.T) {
	deps := &Dependencies{Cluster: onlyConfig{}, HTTPClient: http.DefaultClient}
	gadgets := widgets
	gadgets.Plural = "gadgets"
	first, second, other := deps.writerFor(widgets), deps.writerFor(widgets), deps.writerFor(gadgets)
	if first.Client == nil || first.Client != second.Client || first.Client == other.Client {
		t.Errorf("got the clients %v and %v, and %v for another resource", first.Client, second.Client, other.Client)
	}
}

type onlyConfig struct{ ManagerCluster }

func (onlyConfig) GetConfig() *rest.Config { return &rest.Config{} }

// TestDroppedFieldsOfBuiltInKinds shows that dropped fields are observed for custom kinds only: built-in kinds omit
// zero values and have write-only fields.
func TestDroppedFieldsOfBuiltInKinds(t *testing.T) {
	for group, custom := range map[string]bool{"": false, "apps": false, "batch.k8s.io": false, "example.org": true} {
		r := widgets
		r.Group = group
		deps := &Dependencies{Writer: patching.PatchWriter{Client: &api{}}}
		if observes := deps.writerFor(r).OnDropped != nil; observes != custom {
			t.Errorf("group %q: dropped fields are observed: %v", group, observes)
		}
	}
}
