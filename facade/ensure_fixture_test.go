package kopf_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var (
	houses = memapi.Resource{
		Group: "test.example.org", Version: "v1", Kind: "House", Plural: "houses", Namespaced: true,
		StatusSubresource: true,
	}
	settings          = memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	clusterNamespaces = memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
)

const houseRecord = "test.example.org/children-of.ensure"

// ensureFixture is an API server with houses and the functions to run operators and to edit objects. The spec of a
// house lists its children.
type ensureFixture struct {
	t            *testing.T
	api          *memapi.Server
	directClient client.Client // of all other users
}

// withEnsureFixture calls the function on virtual time.
func withEnsureFixture(t *testing.T, play func(h ensureFixture)) {
	t.Helper()
	onServer(t, func(t *testing.T, api *memapi.Server) {
		api.Install(houses)
		people, err := memapi.NewClient(api, houses, settings, clusterNamespaces)
		if err != nil {
			t.Fatal(err)
		}
		play(ensureFixture{t, api, people})
	})
}

// rooms returns the children in the spec: "name", "namespace/name" or "Kind//name", each optionally with "=value".
func rooms(c *kopf.Unstructured) (children []any) {
	for _, text := range kopf.GetFieldOr(c, "spec.rooms", []string(nil)) {
		text, value, _ := strings.Cut(text, "=")
		parts := strings.Split(text, "/")
		child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		if child.SetName(parts[len(parts)-1]); len(parts) == 3 {
			child.SetKind(parts[0])
		} else if child.Object["data"] = map[string]any{"value": value}; len(parts) == 2 {
			child.SetNamespace(parts[0])
		}
		children = append(children, child)
	}
	return children
}

// ensure declares the rooms of the house. It is the handler of most tests.
func ensure(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	return c.Ensure(ctx, rooms(c.Object)...)
}

var nonDeleteReasons = []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonResume}

// run starts an operator, and returns the connection of its requests and a function that stops it.
func (h ensureFixture) run(register func(s kopf.Selection[*kopf.Unstructured])) (*memapi.Connection, func()) {
	h.t.Helper()
	return h.runWith(kopf.Settings{}, register)
}

// runWith is like run, with settings.
func (h ensureFixture) runWith(
	given kopf.Settings, register func(s kopf.Selection[*kopf.Unstructured]),
) (*memapi.Connection, func()) {
	h.t.Helper()
	return h.runOperator(given, func(_ *kopf.Operator, s kopf.Selection[*kopf.Unstructured]) { register(s) })
}

// runOperator is like runWith, and can register handlers of other kinds.
func (h ensureFixture) runOperator(
	given kopf.Settings, register func(op *kopf.Operator, s kopf.Selection[*kopf.Unstructured]),
) (*memapi.Connection, func()) {
	h.t.Helper()
	given.AddToScheme = runtime.SchemeBuilder{corev1.AddToScheme}
	op := kopf.New("test.example.org", given)
	register(op, kopf.ForResource(op, "test.example.org/v1", "houses"))
	way := h.api.Connect()
	stop := startInManager(h.t, way, op)
	return way, func() {
		if err := stop(); err != nil {
			h.t.Error(err)
		}
	}
}

// runEnsure is like run, with the usual handler.
func (h ensureFixture) runEnsure() (*memapi.Connection, func()) {
	h.t.Helper()
	return h.run(func(s kopf.Selection[*kopf.Unstructured]) { s.On("ensure", nonDeleteReasons, ensure) })
}

// createHouseAndWait creates a house and waits until it is handled.
func (h ensureFixture) createHouseAndWait(rooms ...any) {
	h.t.Helper()
	h.createHouse(rooms...)
	h.settle()
}

// createHouse creates a house and does not wait, as only one goroutine may wait.
func (h ensureFixture) createHouse(rooms ...any) {
	h.t.Helper()
	house := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.example.org/v1", "kind": "House", "metadata": map[string]any{
			"name": "home", "namespace": "default", "labels": map[string]any{"street": "high"},
		}, "spec": map[string]any{"rooms": rooms},
	}}
	if err := h.directClient.Create(h.t.Context(), house); err != nil {
		h.t.Error(err)
	}
}

// changeRooms changes the rooms of the house, and waits.
func (h ensureFixture) changeRooms(rooms ...any) {
	h.t.Helper()
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		house["spec"] = map[string]any{"rooms": rooms}
	})
	h.settle()
}

// settle waits longer than all delays of the tests.
func (h ensureFixture) settle() { time.Sleep(5 * time.Minute); synctest.Wait() }

func (h ensureFixture) house() *kopf.Unstructured {
	return &unstructured.Unstructured{Object: h.api.Object(houses, "default", "home")}
}

// room returns one child; nil if it does not exist.
func (h ensureFixture) room(namespace, name string) *kopf.Unstructured {
	object := h.api.Object(settings, namespace, name)
	if object == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}

// owner returns the UID of the child's owner; empty if the child does not exist, and a fixed text if it is not
// owned.
func (h ensureFixture) owner(namespace, name string) types.UID {
	room := h.room(namespace, name)
	switch {
	case room == nil:
		return ""
	case len(room.GetOwnerReferences()) == 0:
		return "nobody"
	default:
		return room.GetOwnerReferences()[0].UID
	}
}

// writes returns the requests that are not reads, as "verb plural/subresource".
func writes(way *memapi.Connection) (all []string) {
	for _, r := range way.DrainRequests() {
		switch r.Verb {
		case "get", "list", "watch":
		default:
			if r.Resource.Plural != "events" {
				all = append(all, strings.TrimSuffix(r.Verb+" "+r.Resource.Plural+"/"+r.Subresource, "/"))
			}
		}
	}
	return all
}

func nested(object *kopf.Unstructured, path ...string) (string, bool, error) {
	return unstructured.NestedString(object.Object, path...)
}
