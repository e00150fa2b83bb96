package owned_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// label is the label of children with the uid of their owner.
const label = "example.org/owner"

// pods and secrets are the watched kinds of children.
var pods, secrets = parentHandler("pods"), parentHandler("secrets")

func parentHandler(id string) *handlers.Handler {
	h := &handlers.Handler{ID: id, Family: handlers.Parent}
	h.ParentHandler = h
	return h
}

// harness holds children and the handlers of their owners. It journals the calls of handlers and of the author.
type harness struct {
	kind.Writer
	*owned.Children

	t        *testing.T
	handling owned.ChildHandling
	route    *owned.Route
	pods     *owned.ChildSource
	secrets  *owned.ChildSource
	journal  []string
	logLines []string

	ownWrites   map[string]bool    // versions of children that the operator itself has written
	outdated    map[string]bool    // versions of children from before the operator's last write
	drifted     map[types.UID]bool // children that need a repair
	repairDelay *time.Duration     // the delay until the next repair
	// the records of ended children that the owners still have to save
	unsaved    patching.Transform
	answers    []func() (patching.WriteResult, error) // the results of the next writes
	closed     bool
	undeclared map[string]bool // children that are not declared by their owner
}

// gate is open unless the world is closed.
type gate struct{ *harness }

func (g gate) Open() bool  { return !g.closed }
func (g gate) Enter() bool { return g.Open() }
func (gate) Leave()        {}

// newHarness returns a world with a kind of owners with these handlers, and two kinds of children.
func newHarness(t *testing.T, tending ...func(w *harness) *handlers.Handler) *harness {
	w := &harness{t: t, ownWrites: map[string]bool{}, outdated: map[string]bool{}, drifted: map[types.UID]bool{},
		undeclared: map[string]bool{}}
	w.Children = &owned.Children{Label: label, Author: author{w}}
	w.handling = owned.ChildHandling{
		Children: w.Children,
		HandledKind: kind.HandledKind{
			Settings: kind.Settings{WriteTimeout: time.Second, Backoff: 10 * time.Second},
			Writer:   w, Gate: gate{w},
		},
	}
	for _, one := range tending {
		w.handling.Handlers = append(w.handling.Handlers, adapters.New(one(w), nil))
	}
	w.pods, w.secrets = w.StartSource([]*handlers.Handler{pods}, nil), w.StartSource([]*handlers.Handler{secrets}, nil)
	w.startRoute()
	return w
}

// startRoute starts a run of the controller of owners.
func (w *harness) startRoute() {
	var descriptions []*handlers.Handler
	for _, h := range w.handling.Handlers {
		descriptions = append(descriptions, h.Description)
	}
	w.route = w.StartRoute(schema.GroupKind{Group: "example.org", Kind: "Owner"}, descriptions, w,
		func(key types.NamespacedName) { w.note("pass " + key.Name) })
}

func (w *harness) note(what string) { w.journal = append(w.journal, what) }

// want compares the journal and clears it.
func (w *harness) want(reason string, journal ...string) {
	w.t.Helper()
	if d := gocmp.Diff(journal, w.journal); d != "" {
		w.t.Errorf("%s: -want, +got:\n%s", reason, d)
	}
	w.journal = nil
}

// owner returns an object that owns others. Its uid is its name.
func owner(name string) *unstructured.Unstructured { return object("Owner", name, 1) }

// ownerIdentity returns the arguments with which an owner becomes known to a route.
func ownerIdentity(name string) (types.UID, types.NamespacedName) {
	o := owner(name)
	return o.GetUID(), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// child returns a pod. Its owners are named by references, or by its label.
func child(name string, version int, owners ...string) *unstructured.Unstructured {
	o := object("Pod", name, version)
	var references []metav1.OwnerReference
	for _, one := range owners {
		if held, is := strings.CutPrefix(one, label+"="); is {
			o.SetLabels(map[string]string{label: held})
			continue
		}
		references = append(references, metav1.OwnerReference{
			APIVersion: "example.org/v2", Kind: "Owner", UID: types.UID(one), Name: one,
		})
	}
	o.SetOwnerReferences(references)
	return o
}

func object(kind, name string, version int) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind})
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetResourceVersion(fmt.Sprint(version))
	return o
}

// deliverEvent passes an event to a source.
func (w *harness) deliverEvent(s *owned.ChildSource, event string, o *unstructured.Unstructured) {
	w.t.Helper()
	if err := s.HandleEvent(event, compacttest.NewObject(o.Object)); err != nil {
		w.t.Error(err)
	}
}

// handleOwner runs the part of a pass over an owner that handles its children.
func (w *harness) handleOwner(name string) owned.ChildResult {
	w.t.Helper()
	return w.handleOwnerWithin(w.t.Context(), name)
}

func (w *harness) handleOwnerWithin(ctx context.Context, name string) owned.ChildResult {
	log := funcr.New(func(_, line string) { w.logLines = append(w.logLines, line) }, funcr.Options{})
	return w.handling.ReconcileChildren(logf.IntoContext(ctx, log), owner(name).Object)
}

// recordingHandler returns a handler for pods that records its calls and runs one act per call until there are no more.
func recordingHandler(id string, acts ...handlers.Func) func(w *harness) *handlers.Handler {
	return func(w *harness) *handlers.Handler {
		return &handlers.Handler{ID: id, Family: handlers.Child, ParentHandler: pods,
			Call: func(ctx context.Context, call *handlers.Invocation) error {
				told := &unstructured.Unstructured{Object: call.Child}
				w.note(strings.TrimSpace(fmt.Sprint(
					id, " ", cmp.Or(call.Cause.EventType, "LISTED"), " ", told.GetName(), "@",
					told.GetResourceVersion(),
					strings.Repeat(" again", call.Retry),
				)))
				if len(acts) == 0 {
					return nil
				}
				act := acts[0]
				acts = acts[1:]
				return act(ctx, call)
			}}
	}
}

// withOwnerFilter adds a filter of owners.
func withOwnerFilter(
	one func(w *harness) *handlers.Handler, filter handlers.Filter,
) func(w *harness) *handlers.Handler {
	return func(w *harness) *handlers.Handler {
		h := one(w)
		h.Filters = []handlers.Filter{func(ctx context.Context, c *cause.Cause) (bool, error) {
			w.note("filter")
			return filter(ctx, c)
		}}
		return h
	}
}

// author stands for the part of the operator that declares and repairs children.
type author struct{ *harness }

func (w author) IsOwnWrite(child types.UID, version string) bool {
	return w.ownWrites[string(child)+"@"+version]
}

func (w author) IsOutdated(_ types.UID, child *unstructured.Unstructured) bool {
	return w.outdated[child.GetName()+"@"+child.GetResourceVersion()]
}

func (w author) DeclaredMatcher(owner types.UID, body map[string]any) func(child *unstructured.Unstructured) bool {
	if patching.ObjectUID(body) != string(owner) {
		w.t.Errorf("the body has the uid %q, want %q", patching.ObjectUID(body), owner)
	}
	return func(child *unstructured.Unstructured) bool { return !w.undeclared[child.GetName()] }
}

func (w author) ForgetChild(child types.UID) { w.note("gone " + string(child)) }

func (w author) NeedsRepair(_ types.UID, child *unstructured.Unstructured, _, _ bool) bool {
	return w.drifted[child.GetUID()]
}

func (w author) RepairChildren(_ context.Context, owner map[string]any, _ handlers.EventPoster) *time.Duration {
	w.note("repair " + patching.ObjectUID(owner))
	return w.repairDelay
}

func (w author) UnsavedRecords(map[string]any) (patching.Transform, []string) {
	return w.unsaved, []string{"record"}
}

func (w author) Forget(owner types.UID) { w.note("forget " + string(owner)) }

// ApplyRetrying stands for the API server.
func (w *harness) ApplyRetrying(
	_ context.Context, target patching.Target, patch patching.Patch,
) (patching.WriteResult, error) {
	changed, err := patch.ApplyTo(target.Body)
	w.note(fmt.Sprint("write ", changed["status"]))
	if len(w.answers) > 0 {
		answer := w.answers[0]
		w.answers = w.answers[1:]
		return answer()
	}
	object := &unstructured.Unstructured{Object: changed}
	object.SetResourceVersion(object.GetResourceVersion() + "0")
	return patching.WriteResult{Body: changed}, err
}

// Latest stands for the cache of owners.
func (w *harness) Latest(key types.NamespacedName, _ types.UID) map[string]any {
	return owner(key.Name).Object
}
