package kopf_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestMain sets the loggers of the libraries before any manager of a test reads them. The libraries read them once,
// without a lock.
func TestMain(m *testing.M) {
	runProgram()
	runLeader()
	console.ForwardKlog(logr.Discard(), false)
	logf.SetLogger(funcr.New(func(_, line string) {
		defaultLog.Lock()
		defer defaultLog.Unlock()
		defaultLog.lines = append(defaultLog.lines, line)
	}, funcr.Options{}))
	os.Exit(m.Run())
}

// defaultLog has the lines that were logged without a test's own logger.
var defaultLog struct {
	sync.Mutex
	lines []string
}

// countLogged counts the lines with the text.
func countLogged(text string) (count int) {
	defaultLog.Lock()
	defer defaultLog.Unlock()
	for _, line := range defaultLog.lines {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}

// Widget has a field of each sort that is hard to keep in a Go type.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status"`
}

type WidgetSpec struct {
	Owner  string             `json:"owner"` // encoded even if empty
	Size   int32              `json:"size,omitempty"`
	Big    int64              `json:"big,omitempty"`
	Tags   []string           `json:"tags"` // encoded as null
	Parts  []Part             `json:"parts,omitempty"`
	Weight *resource.Quantity `json:"weight,omitempty"`
	Extra  map[string]string  `json:"extra,omitempty"`
}

type Part struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Notes []string `json:"notes"`
}

type WidgetStatus struct {
	Host  string `json:"host,omitempty"`
	Ready bool   `json:"ready"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &copied
}

var widgets = schema.GroupVersion{Group: "example.org", Version: "v1"}

func addWidgets(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(widgets, &Widget{})
	metav1.AddToGroupVersion(scheme, widgets)
	return nil
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := addWidgets(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

type (
	Change = kopf.Change[*Widget]
	Raw    = kopf.Change[*unstructured.Unstructured]

	rawObject = unstructured.Unstructured
)

func succeed(context.Context, *Change) error { return nil }

// body returns a widget as the API server stores it, with the given spec.
func body(spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{
			"namespace": "ns", "name": "w1", "uid": "uid-1", "resourceVersion": "7", "generation": int64(3),
		},
		"spec": spec,
	}
}

// event is a posted Kubernetes event.
type event struct{ Name, Kind, Reason, Message string }

type recorder []event

func (r *recorder) Post(_ context.Context, body map[string]any, kind, reason, message string) {
	*r = append(*r, event{(&unstructured.Unstructured{Object: body}).GetName(), kind, reason, message})
}

func (*recorder) Takes(slog.Level) bool { return true }

// call calls the only handler of the operator as the engine would, and returns the finished attempt.
func call(
	t *testing.T, op *kopf.Operator, body, old map[string]any, tune ...func(*execution.Attempt),
) *execution.Attempt {
	t.Helper()
	return callIn(t.Context(), t, op, body, old, tune...)
}

// callIn is like call, with a context.
func callIn(
	ctx context.Context, t *testing.T, op *kopf.Operator, body, old map[string]any, tune ...func(*execution.Attempt),
) *execution.Attempt {
	t.Helper()
	plan, err := kopf.Plan(op, newScheme(t))
	if err != nil {
		t.Fatalf("setting up: %v", err)
	}
	handler := plan[0].Handler
	what := &cause.Cause{Reason: handler.Reason, Object: jsontext.NewFromValue(body), Old: old}
	what.Diff = diff.Compute(toValue(old), body["spec"])
	a := execution.NewAttempt(handler, what, body)
	a.Account.Started, a.Call.Events = time.Unix(1000, 0), &recorder{}
	for _, change := range tune {
		change(a)
	}
	if _, err := adapters.New(handler, nil).Reconcile(ctx, a); err != nil {
		t.Fatalf("calling the handler: %v", err)
	}
	a.CloseForChanges()
	return a
}

func toValue(old map[string]any) any {
	if old == nil {
		return nil
	}
	return old["spec"]
}

// newCreationOperator returns an operator with one creation handler.
func newCreationOperator(fn func(context.Context, *Change) error, opts ...kopf.Option) *kopf.Operator {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).OnCreate("fn", fn, kopf.JoinOptions(opts...))
	return op
}

// reconcilersOf returns the Reconcilers of handlers, as an operator sets them up.
func reconcilersOf(all ...*handlers.Handler) (list []*adapters.HandlerChain) {
	for _, h := range all {
		list = append(list, adapters.New(h, nil))
	}
	return list
}

// onServer runs a test with an API server on virtual time.
func onServer(t *testing.T, test func(t *testing.T, server *memapi.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, memapi.New()) })
}

// onWidgets is like onServer, with an API server that has the kind of widgets.
func onWidgets(t *testing.T, test func(t *testing.T, server *memapi.Server)) {
	t.Helper()
	onServer(t, func(t *testing.T, server *memapi.Server) {
		server.Install(widgetResource)
		test(t, server)
	})
}

// clientOf returns a client of the API server, as users have it.
func clientOf(t testing.TB, server *memapi.Server) client.Client {
	t.Helper()
	users, err := client.New(memapi.Config(server), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// planOf returns the handlers of the operator as it registers them in a manager.
func planOf(t testing.TB, op *kopf.Operator) []reconcilers.Registration {
	t.Helper()
	plan, err := kopf.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
