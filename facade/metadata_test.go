package kopf_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// widgetMetadata returns an object that selects the metadata of widgets.
func widgetMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.org/v1", Kind: "Widget"}}
}

type metadataEvent = kopf.WatchEvent[*metav1.PartialObjectMetadata]

// trafficMeter counts the bytes that lists and watches of a kind transfer, and records the forms that they request.
type trafficMeter struct {
	next http.RoundTripper
	path string

	bytes         atomic.Int64
	mu            sync.Mutex
	acceptHeaders []string
}

func (m *trafficMeter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, m.path) {
		return response, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	form, _, _ := strings.Cut(r.Header.Get("Accept"), ";g=")
	m.acceptHeaders = append(m.acceptHeaders, form)
	response.Body = &meteredBody{response.Body, &m.bytes}
	return response, nil
}

type meteredBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// TestWatchingMetadata shows that metadata is watched if all handlers only see metadata, and whole objects otherwise.
func TestWatchingMetadata(t *testing.T) {
	partial := "application/json;as=PartialObjectMetadata"
	for name, tc := range map[string]struct {
		reason   string
		register func(op *kopf.Operator)
		want     string // the form of the watch
	}{
		"Metadata": {
			"an event handler and an index of metadata watch metadata", func(op *kopf.Operator) {
				s := kopf.For(op, widgetMetadata()).MatchingLabels("part").When(
					func(_ context.Context, o *metav1.PartialObjectMetadata) bool { return o.Name != "" })
				s.OnEvent("event", func(context.Context, *metadataEvent) error { return nil })
				kopf.NewIndex(s, "index", func(
					context.Context, *metav1.PartialObjectMetadata,
				) (map[string]string, error) {
					return nil, nil
				})
			}, partial,
		},
		"Typed": {
			"a handler of whole objects makes all handlers watch whole objects", func(op *kopf.Operator) {
				kopf.For(op, widgetMetadata()).OnEvent("a", func(context.Context, *metadataEvent) error { return nil })
				kopf.For(op, &Widget{}).OnEvent("b", func(context.Context, *kopf.WatchEvent[*Widget]) error {
					return nil
				})
			}, "application/json",
		},
		"Changes": {
			"a change handler watches whole objects, even if it only sees metadata", func(op *kopf.Operator) {
				kopf.For(op, widgetMetadata()).OnUpdate("a",
					func(context.Context, *kopf.Change[*metav1.PartialObjectMetadata]) error { return nil })
			}, "application/json",
		},
		"Timers": {
			"a timer watches whole objects to detect whether they are idle", func(op *kopf.Operator) {
				kopf.For(op, widgetMetadata()).Timer("a", time.Hour,
					func(context.Context, *kopf.Task[*metav1.PartialObjectMetadata]) error { return nil })
			}, "application/json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				meter := &trafficMeter{next: server, path: "/widgets"}
				op := kopf.New("test.example.org")
				tc.register(op)
				stop := operate(t, meter, op, logr.Discard())
				time.Sleep(time.Second)
				stop()
				if d := cmp.Diff([]string{tc.want}, meter.acceptHeaders); d != "" {
					t.Errorf("%s: -want, +requested:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestHandlersOfMetadata shows that handlers of metadata see the real kind, can change metadata, and transfer a
// fraction of the bytes.
func TestHandlersOfMetadata(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		content := map[string]any{"owner": strings.Repeat("x", 2000)}
		const count = 50
		for i := range count {
			object := body(content)
			object["metadata"] = map[string]any{
				"namespace": "ns", "name": fmt.Sprintf("w%02d", i), "uid": fmt.Sprint("uid-", i),
				"labels": map[string]any{"part": fmt.Sprint(i)},
			}
			server.Put(widgetResource, object)
		}
		whole, bare := &trafficMeter{next: server, path: "/widgets"}, &trafficMeter{next: server, path: "/widgets"}
		typed := kopf.New("typed.example.org")
		kopf.For(typed, &Widget{}).OnEvent("a", func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil })
		defer operate(t, whole, typed, logr.Discard())()

		op := kopf.New("test.example.org")
		seen := make(chan string, 2*count)
		kopf.For(op, widgetMetadata()).MatchingLabels("part=7").OnEvent("a",
			func(_ context.Context, e *metadataEvent) error {
				seen <- fmt.Sprintln(e.Type, e.Object.GroupVersionKind(), e.Object.Name, e.Object.Annotations)
				e.Patch(func(o *metav1.PartialObjectMetadata) {
					o.Annotations = map[string]string{"seen.example.org/by": e.ID}
				})
				return nil
			})
		defer operate(t, bare, op, logr.Discard())()
		time.Sleep(time.Minute)
		synctest.Wait() // virtual time alone does not order this: a handler could still be sending
		close(seen)
		var lines []string
		for line := range seen {
			lines = append(lines, line)
		}
		want := []string{
			" example.org/v1, Kind=Widget w07 map[]\n",
			"MODIFIED example.org/v1, Kind=Widget w07 map[seen.example.org/by:a]\n",
		}
		if d := cmp.Diff(want, lines); d != "" {
			t.Errorf("-want, +seen:\n%s", d)
		}
		if d := cmp.Diff(content, server.Object(widgetResource, "ns", "w07")["spec"]); d != "" {
			t.Errorf("a field that is not watched must not change: -want, +got:\n%s", d)
		}
		if all, part := whole.bytes.Load(), bare.bytes.Load(); part > all/4 {
			t.Errorf("%d bytes of whole objects, %d of metadata; want at most a quarter", all, part)
		} else {
			t.Logf("%d objects with specs of 2000 bytes: %d bytes whole, %d of metadata", count, all, part)
		}
	})
}

// TestFinalizersAndMetadata shows that a finalizer that the operator added earlier is removed, although its handlers
// see only metadata.
func TestFinalizersAndMetadata(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		left := body(map[string]any{"size": int64(1)})
		metadata, _ := left["metadata"].(map[string]any)
		metadata["finalizers"] = []any{"test.example.org/finalizer", "other.example.org/stays"}
		server.Put(widgetResource, left)
		op := kopf.New("test.example.org")
		kopf.For(op, widgetMetadata()).OnEvent("a", func(context.Context, *metadataEvent) error { return nil })
		defer operate(t, server, op, logr.Discard())()
		time.Sleep(time.Minute)
		now := &metav1.PartialObjectMetadata{}
		reader, err := memapi.NewClient(server, widgetResource)
		if err != nil {
			t.Fatal(err)
		}
		now.SetGroupVersionKind(widgetMetadata().GroupVersionKind())
		if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "w1"}, now); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"other.example.org/stays"}, now.Finalizers); d != "" {
			t.Errorf("only the finalizer of the operator must be removed: -want, +got:\n%s", d)
		}
	})
}
