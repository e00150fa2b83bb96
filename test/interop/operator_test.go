package interop_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// KopfExample is the kind as a Go type, with less in it than the objects have.
type KopfExample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Field string `json:"field"`
	} `json:"spec"`
}

// DeepCopyObject makes it an object.
func (k *KopfExample) DeepCopyObject() runtime.Object {
	own := *k
	own.ObjectMeta = *k.ObjectMeta.DeepCopy()
	return &own
}

// goOperator is our operator, with the same handlers as Kopf's.
type goOperator struct {
	isTyped  bool
	priority int       // among the operators of the peering that Kopf's find by themselves; 0 has no peers
	log      io.Writer // also gets the manager's log; can be nil
	cancel   func()

	mu            sync.Mutex
	recordedCalls []call
}

func (o *goOperator) start(namespace string) {
	GinkgoHelper()
	o.recordedCalls = nil
	settings := kopf.AsKopf()
	settings.Namespaces = []string{namespace}
	if o.priority != 0 {
		settings.Peering.Name, settings.Peering.Priority = "default", o.priority
	}
	op := kopf.New("interop.example.org", settings)
	if o.isTyped {
		prototype := &KopfExample{}
		prototype.SetGroupVersionKind(schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"})
		register(o, kopf.For(op, prototype))
	} else {
		register(o, kopf.ForResource(op, "kopf.dev/v1", "kopfexamples"))
	}
	cancel, done := manage(config, o.log, op)
	o.cancel = sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
	DeferCleanup(o.stop)
}

// manage runs an operator until it is cancelled; the channel gets the error of its end.
func manage(config *rest.Config, log io.Writer, op *kopf.Operator) (cancel func(), done <-chan error) {
	GinkgoHelper()
	options := ctrl.Options{Metrics: server.Options{BindAddress: "0"}}
	if log != nil {
		options.Logger = zap.New(zap.WriteTo(io.MultiWriter(GinkgoWriter, log)))
	}
	m, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	Expect(op.SetupWithManager(m)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	return cancel, ended
}

func (o *goOperator) stop() { o.cancel() }

func (o *goOperator) calls() []call {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.recordedCalls)
}

func register[T client.Object](o *goOperator, examples kopf.Selection[T]) {
	handle := func(retried bool) kopf.ChangeFunc[T] {
		return func(_ context.Context, c *kopf.Change[T]) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.recordedCalls = append(o.recordedCalls, call{
				ID: c.ID, Name: c.Object.GetName(), Retry: c.Retry, Reason: string(c.Reason), Diff: items(c.Diff),
				At: float64(time.Now().UnixMicro()) / 1e6,
			})
			switch {
			case retried && c.Retry == 0:
				return kopf.Temporary(fmt.Errorf("later"), 5*time.Second)
			case c.ID == "create_fn":
				c.SetResult(map[string]string{"by": "anybody"})
			}
			return nil
		}
	}
	examples.OnCreate("create_fn", handle(false))
	examples.WithLabel("retried", "yes").OnCreate("retried_fn", handle(true))
	examples.OnUpdate("update_fn", handle(false))
	examples.OnField("field_fn", "spec.field", handle(false))
	examples.OnDelete("delete_fn", handle(false))
}

// items are a diff as Kopf has it.
func items(changes kopf.Diff) []any {
	list := []any{}
	for _, item := range changes {
		path := []any{}
		for _, key := range item.Path {
			path = append(path, key)
		}
		list = append(list, []any{string(item.Op), path, item.Old, item.New})
	}
	return list
}

// example returns an object that is hard to take over: integers and floats, letters beyond ASCII, and characters that
// HTML escapes.
func example(namespace, name string, labels map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{
		"namespace": namespace, "name": name, "annotations": map[string]any{"example.org/note": "grüße <&> 👋"},
	}
	if labels != nil {
		metadata["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata,
		"spec": map[string]any{
			"field": "a", "whole": int64(1), "half": 1.5, "one": 1.0, "list": []any{"ü", nil},
			"empty": map[string]any{},
		},
	}}
}
