package kopf_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// readers registers handlers of several families, which call read with their clients.
func readers(op *kopf.Operator, read func(id string, cached client.Client, live client.Reader)) {
	widgets := kopf.For(op, &Widget{})
	widgets.OnCreate("change", func(_ context.Context, c *Change) error {
		c.Sub("sub", func(_ context.Context, c *Change) error { read("sub", c.Client, c.APIReader); return nil })
		read("change", c.Client, c.APIReader)
		return nil
	})
	widgets.OnEvent("event", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
		if e.Type == kopf.WatchEventAdded {
			read("event", e.Client, e.APIReader)
		}
		return nil
	})
	widgets.Daemon("daemon", func(_ context.Context, r *kopf.Task[*Widget]) error {
		read("daemon", r.Client, r.APIReader)
		return nil
	})
}

// TestClientsOfAManager shows that in a project's manager, Client is the client of the manager, which reads from its
// cache, and APIReader reads live.
func TestClientsOfAManager(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		connection := server.Connect()
		server.Put(configMaps, map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "a", "uid": "1"}})
		op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{corev1.AddToScheme}})
		mu, done := sync.Mutex{}, []string{}
		readers(op, func(id string, cached client.Client, live client.Reader) {
			mu.Lock()
			defer mu.Unlock()
			var requests []string
			for _, reader := range []client.Reader{cached, live} {
				key := client.ObjectKey{Namespace: "ns", Name: "a"}
				if err := reader.Get(t.Context(), key, &corev1.ConfigMap{}); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				requests = append(requests, verbsOf(connection))
			}
			if requests[0] == "get" || requests[1] != "get" {
				t.Errorf("%s: requests %q: Client must read from the cache, APIReader must not", id, requests)
			}
			done = append(done, id)
		})
		stop := operate(t, connection, op, logr.Discard())
		defer stop()
		time.Sleep(time.Second)
		server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if slices.Sort(done); !slices.Equal(done, []string{"change", "daemon", "event", "sub"}) {
			t.Errorf("handlers that have read: %q", done)
		}
	})
}

var configMaps = memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true, Plain: true}

// verbsOf returns the verbs of the requests for config maps since its last call.
func verbsOf(connection *memapi.Connection) string {
	var verbs []string
	for _, r := range connection.DrainRequests() {
		if r.Resource.Plural == configMaps.Plural {
			verbs = append(verbs, r.Verb)
		}
	}
	return strings.Join(verbs, " ")
}

// serve serves an in-memory API server on a socket, and returns the kubeconfig.
func serve(t *testing.T, api http.RoundTripper) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := api.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = response.Body.Close() }()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		for buffer := make([]byte, 1<<12); ; {
			_ = http.NewResponseController(w).Flush()
			n, err := response.Body.Read(buffer)
			_, _ = w.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	data, err := os.ReadFile(unreachableKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	data = []byte(strings.Replace(string(data), "http://127.0.0.1:1", server.URL, 1))
	if err := os.WriteFile(kubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestClientsOfMain shows that a program reads live, even outside of its own namespaces, unless its settings name the
// kind.
func TestClientsOfMain(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		settings kopf.Settings
		want     string // the errors of Client and APIReader
	}{
		"Live": {"a live read reaches namespaces that are not served", kopf.Settings{}, "<nil> <nil>"},
		"Cached": {
			"a cached read only reaches namespaces that are served",
			kopf.Settings{CachedReads: []client.Object{&Widget{}}},
			"unable to get: other/a because of unknown namespace for the cache <nil>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, errs := memapi.New(), make(chan error, 2)
			server.Install(widgetResource)
			server.Put(widgetResource, map[string]any{
				"metadata": map[string]any{"namespace": "other", "name": "a", "uid": "1"},
			})
			c.settings.AddToScheme = append(c.settings.AddToScheme, addWidgets)
			op := kopf.New("test.example.org", c.settings)
			kopf.For(op, &Widget{}).OnCreate("fn", func(ctx context.Context, c *Change) error {
				for _, reader := range []client.Reader{c.Client, c.APIReader} {
					errs <- reader.Get(ctx, client.ObjectKey{Namespace: "other", Name: "a"}, &Widget{})
				}
				return nil
			})
			cmd := op.Command()
			cmd.SetArgs([]string{"-n", "ns", "-q", "--kubeconfig", serve(t, server), "--debug-bind-address", "0"})
			cmd.SetErr(io.Discard)
			ctx, cancel := context.WithCancel(t.Context())
			server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
			done := make(chan error, 1)
			go func() { done <- cmd.ExecuteContext(ctx) }()
			ofClient, ofLive := <-errs, <-errs
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := fmt.Sprint(ofClient, " ", ofLive); got != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, got)
			}
		})
	}
}

// TestConnectionOfMain shows that the connection settings of a program reach the configuration of its manager.
func TestConnectionOfMain(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		settings  kopf.Settings
		wantProxy bool // the configuration overrides the proxy of the environment
	}{
		"Default": {"by default, the proxy of the environment is not used", kopf.Settings{}, true},
		"Trusted": {
			"with TrustEnv, client-go uses the proxy of the environment",
			kopf.Settings{Networking: kopf.NetworkingSettings{TrustEnv: true}}, false,
		},
		"Requests": {
			"the connect timeout of requests is set",
			kopf.Settings{Networking: kopf.NetworkingSettings{ConnectTimeout: time.Second}},
			true,
		},
		"Watches": {
			"the connect timeout of watches is set separately",
			kopf.Settings{Watching: kopf.WatchingSettings{ConnectTimeout: time.Second}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			op, got := kopf.New("test.example.org", c.settings), &rest.Config{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			op.WithManager(func(m ctrl.Manager) error {
				got = m.GetConfig()
				cancel()
				return nil
			})
			cmd := op.Command()
			cmd.SetArgs([]string{"-A", "-q", "--kubeconfig", unreachableKubeconfig})
			if err := cmd.ExecuteContext(ctx); err != nil {
				t.Fatal(err)
			}
			if (got.Proxy != nil) != c.wantProxy || got.Dial == nil {
				t.Errorf("%s: the settings did not reach the manager: %+v", c.reason, got)
			}
			own := c.settings
			want := credentials.Configuration{
				ConnectTimeout:      cmp.Or(own.Networking.ConnectTimeout, 30*time.Second),
				WatchConnectTimeout: own.Watching.ConnectTimeout, TrustEnv: own.Networking.TrustEnv,
			}
			if got := kopf.ConnectionOf(op); got != want {
				t.Errorf("%s: want %+v, got %+v", c.reason, want, got)
			}
		})
	}
}

// TestSettingsOfProgramsOnly shows that settings for programs are errors in a manager of another program.
func TestSettingsOfProgramsOnly(t *testing.T) {
	op := kopf.New("test.example.org", kopf.Settings{
		CachedReads: []client.Object{&corev1.Secret{}},
		LogHandler:  slog.DiscardHandler,
		Watching:    kopf.WatchingSettings{ConnectTimeout: time.Second},
		Networking:  kopf.NetworkingSettings{ConnectTimeout: time.Second, TrustEnv: true},
	})
	err := op.SetupWithManager(newManager(t, newScheme(t)))
	if err == nil {
		t.Fatal("settings for programs must be an error")
	}
	for _, want := range []string{
		"5 mistakes", "facade/clients_test.go:", "kopf.New: CachedReads: it is for kopf.Main; here, the client is",
		"kopf.New: LogHandler: it is for kopf.Main; here, give logr.FromSlogHandler(handler) to the manager",
		"kopf.New: Watching.ConnectTimeout: it is for kopf.Main; here, set Dial",
		"kopf.New: Networking.ConnectTimeout: it is for kopf.Main; here, set Dial",
		"kopf.New: Networking.TrustEnv: it is for kopf.Main; here, set Proxy",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

// TestWrongCachedReads shows that all wrong objects in CachedReads are errors of the set-up.
func TestWrongCachedReads(t *testing.T) {
	op := kopf.New("test.example.org", kopf.Settings{
		CachedReads: []client.Object{&Widget{}, nil, &corev1.Secret{}, &unstructured.Unstructured{}},
	})
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil {
		t.Fatal("wrong CachedReads must be an error")
	}
	for _, want := range []string{
		"3 mistakes", "CachedReads[1]: the object is nil: give an empty one of the kind",
		"CachedReads[2]: the scheme does not know *v1.Secret: give the AddToScheme of its package",
		"CachedReads[3]: an object of the type *unstructured.Unstructured",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
