package informers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/informers"
)

// TestInformers shows that an informer lists by pages if the API server does not stream lists, and watches from there.
func TestInformers(t *testing.T) {
	widgets := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	tests := map[string]struct {
		reason    string
		kind      schema.GroupVersionKind
		plural    string
		namespace string
		path      string
	}{
		"Group": {"a kind with a group is requested by its group",
			widgets, "widgets", "", "/apis/example.org/v1/widgets"},
		"Namespace": {"a namespaced interest requests one namespace",
			widgets, "widgets", "ns", "/apis/example.org/v1/namespaces/ns/widgets"},
		"Core": {
			"a kind of the core group is requested at its own path",
			schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", "",
			"/api/v1/pods",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := &api{path: tc.path}
			web := httptest.NewServer(server)
			defer web.Close()
			resource := discovery.Resource{GroupVersionKind: tc.kind, Plural: tc.plural}
			informer, err := informers.New(
				&rest.Config{Host: web.URL}, web.Client(), resource, informers.WatchInterest{Namespace: tc.namespace},
			)
			if err != nil {
				t.Fatal(err)
			}
			seen := make(chan string, 10)
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(item any) {
				object, _ := item.(*compact.CachedObject)
				seen <- fmt.Sprint(object.GetName())
			}})
			if err != nil {
				t.Fatal(err)
			}
			var running sync.WaitGroup
			stop := make(chan struct{})
			running.Go(func() { informer.Run(stop) })
			var names []string
			for range 2 {
				names = append(names, <-seen)
			}
			close(stop)
			running.Wait()
			if d := cmp.Diff([]string{"listed", "watched"}, names); d != "" || len(server.mistakes) > 0 {
				t.Errorf("%s: %q: -want, +got:\n%s", tc.reason, server.mistakes, d)
			}
		})
	}
}

// api is an API server without streaming lists.
type api struct {
	path string

	mu       sync.Mutex
	mistakes []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	a.mu.Lock()
	if r.URL.Path != a.path || r.Header.Get("Accept") != "application/json" {
		a.mistakes = append(a.mistakes, fmt.Sprint(r.URL, r.Header))
	}
	if seconds, err := time.ParseDuration(query.Get("timeoutSeconds") + "s"); query.Get("watch") != "" &&
		(err != nil || seconds < time.Minute || query.Get("timeout") != seconds.String()) {
		a.mistakes = append(a.mistakes, "a watch without a timeout: "+r.URL.RawQuery)
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case query.Get("watch") != "":
		_, _ = fmt.Fprint(w, `{"type":"ADDED","object":{"metadata":{"name":"watched","resourceVersion":"8"}}}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		_, _ = fmt.Fprint(w, `{"kind":"XList","metadata":{"resourceVersion":"7"},`+
			`"items":[{"metadata":{"name":"listed","resourceVersion":"7"}}]}`)
	}
}

// TestNoInformer shows that an invalid address of the API server is an error before an informer runs.
func TestNoInformer(t *testing.T) {
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := discovery.Resource{GroupVersionKind: pod, Plural: "pods"}
	_, err := informers.New(&rest.Config{Host: "http://[::1"}, http.DefaultClient, resource, informers.WatchInterest{})
	if err == nil || !strings.Contains(err.Error(), "Pod") {
		t.Errorf("got %v", err)
	}
}

// TestInformersOfMessages shows that a kind with protobuf messages is requested in that form, and that JSON is
// accepted, too.
func TestInformersOfMessages(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for _, sent := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(sent, func(t *testing.T) {
			server := &fixedProtocolServer{sends: sent}
			web := httptest.NewServer(server)
			defer web.Close()
			informer, err := informers.New(
				&rest.Config{Host: web.URL}, web.Client(),
				discovery.Resource{GroupVersionKind: kind, Plural: "configmaps"},
				informers.WatchInterest{Kind: compact.KindOf(clientgoscheme.Scheme, kind)},
			)
			if err != nil {
				t.Fatal(err)
			}
			seen := make(chan string, 10)
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(item any) {
				object, _ := item.(*compact.CachedObject)
				body, err := object.Body()
				seen <- fmt.Sprint(body, err)
			}})
			if err != nil {
				t.Fatal(err)
			}
			var running sync.WaitGroup
			stop := make(chan struct{})
			running.Go(func() { informer.Run(stop) })
			got := <-seen
			close(stop)
			running.Wait()
			want := "map[apiVersion:v1 data:map[a:b] kind:ConfigMap metadata:map[name:n]] <nil>"
			if d := cmp.Diff(want, got); d != "" || server.mistake != "" {
				t.Errorf("%s, -want, +got:\n%s", server.mistake, d)
			}
		})
	}
}

// fixedProtocolServer lists one config map in one of the forms. It refuses watches.
type fixedProtocolServer struct {
	sends string

	mu      sync.Mutex
	mistake string
}

func (p *fixedProtocolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if accepted := r.Header.Get("Accept"); accepted != "application/vnd.kubernetes.protobuf,application/json" {
		p.mu.Lock()
		p.mistake = "it accepts " + accepted
		p.mu.Unlock()
	}
	w.Header().Set("Content-Type", p.sends)
	if r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{{
		ObjectMeta: metav1.ObjectMeta{Name: "n"}, Data: map[string]string{"a": "b"},
	}}}
	info, _ := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), p.sends)
	_ = clientgoscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(list, w)
}
