package reviews_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// maxHeapGrowth is how much the heap may grow by reviews of 5 MB, however many come at once.
const maxHeapGrowth = 400 << 20

var widgets = memapi.Resource{
	Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
}

// Widget is an object that takes any content.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Size int            `json:"size"`
		Data map[string]any `json:"data,omitempty"`
	} `json:"spec"`
}

// DeepCopyObject is for schemes alone.
func (w *Widget) DeepCopyObject() kruntime.Object { copied := *w; return &copied }

// portlessServer is a webhook server without a port.
type portlessServer struct{ webhook.Server }

func (portlessServer) Start(ctx context.Context) error { <-ctx.Done(); return nil }

// serveHandlers runs an operator with a handler of each kind, and returns a server of their paths.
func serveHandlers(t *testing.T) *httptest.Server {
	t.Helper()
	logf.SetLogger(logr.Discard())
	api := memapi.New()
	api.Install(widgets)
	types := kruntime.NewScheme()
	version := schema.GroupVersion{Group: widgets.Group, Version: widgets.Version}
	types.AddKnownTypeWithName(version.WithKind(widgets.Kind), &Widget{})
	metav1.AddToGroupVersion(types, version)
	on := portlessServer{webhook.NewServer(webhook.Options{})}
	m, err := ctrl.NewManager(memapi.Config(api), ctrl.Options{
		Scheme: types, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), WebhookServer: on,
	})
	if err != nil {
		t.Fatal(err)
	}
	op := kopf.New("ops")
	selected := kopf.For(op, &Widget{})
	selected.Validate("filtered", func(context.Context, *kopf.Admission[*Widget]) error { return nil },
		kopf.InField("spec.size"))
	selected.Validate("compared", func(_ context.Context, a *kopf.Admission[*Widget]) error {
		a.Diff()
		return nil
	})
	selected.Mutate("changed", func(_ context.Context, a *kopf.Admission[*Widget]) error {
		a.Object.Spec.Size++
		return nil
	})
	if err := op.SetupWithManager(m); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	server := httptest.NewServer(on.WebhookMux())
	t.Cleanup(server.Close)
	for status, _ := send(t, server, paths[0], reviewOf("{}", "{}")); status != http.StatusOK; {
		time.Sleep(10 * time.Millisecond)
		status, _ = send(t, server, paths[0], reviewOf("{}", "{}"))
	}
	return server
}

var paths = []string{"/ops/validate/filtered/spec.size", "/ops/validate/compared", "/ops/mutate/changed"}

// send posts a review, and returns the status and whether it is to be repeated.
func send(t *testing.T, server *httptest.Server, path string, body []byte) (status int, again bool) {
	t.Helper()
	answer, err := server.Client().Post(server.URL+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header.Get("Retry-After") != ""
}

// reviewOf is an update of the data of an object.
func reviewOf(data, old string) []byte {
	object := func(data string) string {
		return `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"x","namespace":"ns","uid":"u"},` +
			`"spec":{"size":1,"data":` + data + `}}`
	}
	return []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1",` +
		`"operation":"UPDATE","name":"x","namespace":"ns","userInfo":{"username":"ann"},` +
		`"resource":{"group":"example.org","version":"v1","resource":"widgets"},` +
		`"object":` + object(data) + `,"oldObject":` + object(old) + `}}`)
}

// fillText is a text of that size at least, of parts with commas between them.
func fillText(size int, begin, end string, part func(i int) string) string {
	var text strings.Builder
	text.WriteString(begin)
	for i := 0; text.Len() < size; i++ {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(part(i))
	}
	return text.String() + end
}

// shapes are reviews of 5 MB: of both objects, each has a half, and all values differ.
func shapes() map[string][]byte {
	const half = 5 << 20 / 2
	both := func(text func(side int) string) []byte { return reviewOf(text(0), text(1)) }
	keys := func(side int) string {
		return fillText(half, "{", "}", func(i int) string { return fmt.Sprintf(`"k%d":"value %d of %d"`, i, i, side) })
	}
	return map[string][]byte{
		"text": both(func(side int) string { return fmt.Sprintf(`{"a":"%d%s"}`, side, strings.Repeat("x", half)) }),
		"keys": both(keys),
		"deep": both(func(side int) string {
			return strings.Repeat(`{"a":`, 120) + keys(side) + strings.Repeat("}", 120)
		}),
		"numbers": both(func(side int) string {
			return fillText(half, `{"a":[`, "]}", func(i int) string { return fmt.Sprint(10_000 + i + side) })
		}),
		"objects": both(func(side int) string {
			return fillText(half, `{"a":[`, "]}", func(i int) string {
				return fmt.Sprintf(`{"name":"item-%d","value":"%d","protocol":"TCP"}`, i, side)
			})
		}),
		"tiny objects": both(func(side int) string {
			return fillText(half, `{"a":[`, "]}", func(int) string { return fmt.Sprintf(`{"a":%d}`, side) })
		}),
	}
}

// growthBy returns how much the heap grows at most while the work is done.
func growthBy(work func()) int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before, most := stats.HeapInuse, stats.HeapInuse
	done := make(chan struct{})
	go func() { defer close(done); work() }()
	for {
		runtime.ReadMemStats(&stats)
		most = max(most, stats.HeapInuse)
		select {
		case <-done:
			return int64(most - before)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestEightReviews shows that eight concurrent reviews are answered, possibly after the retries of the API server.
func TestEightReviews(t *testing.T) {
	server := serveHandlers(t)
	for name, body := range shapes() {
		for _, path := range paths {
			t.Run(name+path, func(t *testing.T) {
				var mu sync.Mutex
				statuses := map[int]int{}
				grown := growthBy(func() {
					var all sync.WaitGroup
					for range 8 {
						all.Go(func() {
							status, again := send(t, server, path, body)
							for again {
								time.Sleep(time.Second)
								status, again = send(t, server, path, body)
							}
							mu.Lock()
							defer mu.Unlock()
							statuses[status]++
						})
					}
					all.Wait()
				})
				t.Logf("the heap has grown by %d MB; %v", grown>>20, statuses)
				if grown > maxHeapGrowth {
					t.Errorf("8 reviews of 5 MB take %d MB, want %d at most", grown>>20, maxHeapGrowth>>20)
				}
				heavy := name == "tiny objects"
				if heavy && statuses[http.StatusRequestEntityTooLarge] != 8 || !heavy && statuses[http.StatusOK] != 8 {
					t.Errorf("got %v", statuses)
				}
			})
		}
	}
}

// Of 64 reviews at once, some are answered, and all others refused.
func TestSixtyFourReviews(t *testing.T) {
	server := serveHandlers(t)
	for name, body := range shapes() {
		if name == "text" || name == "tiny objects" {
			continue // they are light, or refused
		}
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			statuses := map[int]int{}
			grown := growthBy(func() {
				var all sync.WaitGroup
				for i := range 64 {
					all.Go(func() {
						status, _ := send(t, server, paths[i%len(paths)], body)
						mu.Lock()
						defer mu.Unlock()
						statuses[status]++
					})
				}
				all.Wait()
			})
			t.Logf("the heap has grown by %d MB; %v", grown>>20, statuses)
			if grown > maxHeapGrowth {
				t.Errorf("64 reviews of 5 MB take %d MB, want %d at most", grown>>20, maxHeapGrowth>>20)
			}
			// A client that needs longer than a second to send its review, on a busy machine, gets 408.
			served, slow := statuses[http.StatusOK], statuses[http.StatusRequestTimeout]
			refused := statuses[http.StatusServiceUnavailable]
			if served == 0 || refused == 0 || served+refused+slow != 64 {
				t.Errorf("got %v", statuses)
			}
		})
	}
}
