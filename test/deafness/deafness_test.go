package deafness_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/test/deafness"
)

// timing are the times of a run: by default of a short one.
type timing struct {
	inactivity   time.Duration // the setting of our operator
	eventTimeout time.Duration // with the plain operator, from the beginning
}

// isLongRun is set if all settings have their defaults.
var isLongRun = os.Getenv("DEAFNESS") != ""

// TestMain sets the pings of client-go, before there are any connections: the tests run beside each other.
func TestMain(m *testing.M) {
	if !isLongRun {
		_ = os.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2")
		_ = os.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	}
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func timingOf() timing {
	if isLongRun {
		return timing{eventTimeout: 4 * time.Minute}
	}
	return timing{inactivity: time.Second, eventTimeout: 8 * time.Second}
}

// TestDeafness counts how long it takes until an event arrives that happens after a proxy went deaf.
func TestDeafness(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	f := timingOf()
	tests := map[string]struct {
		protocol string
		proxy    func(*testing.T, *memapi.Server, string) deafProxy
	}{
		"HTTP1Connection":           {"http/1.1", connections},
		"HTTP2Connection":           {"h2", connections},
		"HTTP2StreamsThatArePinged": {"h2", streams(false)},
		"HTTP2AllThatArePinged":     {"h2", streams(true)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := memapi.New()
			w := tc.proxy(t, server, tc.protocol)
			ours, plain := runOurs(t, w.config(tc.protocol), f.inactivity), runPlain(t, w.config(tc.protocol))
			create(t, server, "before")
			<-ours
			<-plain
			w.deafen()
			began := time.Now()
			create(t, server, "after")
			if !awaitEvent(t, "kopf-runtime", began, ours, 10*f.eventTimeout) {
				t.Error("the operator has not noticed that its watch is dead")
			}
			awaitEvent(t, "controller-runtime", began, plain, f.eventTimeout)
		})
	}
}

// awaitEvent prints when the event has arrived.
func awaitEvent(t *testing.T, who string, began time.Time, seen <-chan string, patience time.Duration) bool {
	t.Helper()
	select {
	case <-seen:
		t.Logf("%s: %s has caught up after %s", t.Name(), who, time.Since(began).Round(100*time.Millisecond))
		return true
	case <-time.After(patience - time.Since(began)):
		t.Logf("%s: %s has not caught up within %s", t.Name(), who, patience)
		return false
	}
}

// deafProxy is one to the server that can go deaf.
type deafProxy struct {
	url    string
	deafen func()
}

// config is that of one process: its connections are its own, as each has a dialer of its own.
func (w deafProxy) config(protocol string) *rest.Config {
	c := memapi.Config(nil)
	c.Host, c.Transport = w.url, nil
	c.TLSClientConfig = rest.TLSClientConfig{Insecure: true, NextProtos: []string{protocol}}
	c.Dial = (&net.Dialer{}).DialContext
	return c
}

func serve(
	t *testing.T, protocol string, handler http.Handler, connect func(context.Context, net.Conn) context.Context,
) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = protocol == "h2"
	s.Config.ConnContext = connect
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func connections(t *testing.T, server *memapi.Server, protocol string) deafProxy {
	t.Helper()
	backend := serve(t, protocol, &deafness.Streams{Backend: server}, nil)
	proxy, err := deafness.NewTCP(backend.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return deafProxy{"https://" + proxy.Addr(), proxy.Deafen}
}

func streams(whole bool) func(*testing.T, *memapi.Server, string) deafProxy {
	return func(t *testing.T, server *memapi.Server, protocol string) deafProxy {
		t.Helper()
		proxy := &deafness.Streams{Backend: server, BlocksNewStreams: whole}
		return deafProxy{serve(t, protocol, proxy, proxy.Connect).URL, proxy.Deafen}
	}
}

func create(t *testing.T, server *memapi.Server, name string) {
	t.Helper()
	direct, err := client.New(memapi.Config(server), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := direct.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func newManager(t *testing.T, c *rest.Config) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(c, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func start(t *testing.T, m manager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager: %v", err)
		}
	})
}

func runOurs(t *testing.T, c *rest.Config, inactivity time.Duration) <-chan string {
	t.Helper()
	seen, m := make(chan string, 100), newManager(t, c)
	op := kopf.New(fmt.Sprintf("deafness-%d.example.org", time.Now().UnixNano()), kopf.Settings{
		Watching: kopf.WatchingSettings{InactivityTimeout: inactivity},
	})
	kopf.For(op, &corev1.ConfigMap{}).OnEvent("seen", func(
		_ context.Context, e *kopf.WatchEvent[*corev1.ConfigMap],
	) error {
		seen <- e.Object.Name
		return nil
	})
	if err := op.SetupWithManager(m); err != nil {
		t.Fatal(err)
	}
	start(t, m)
	return seen
}

func runPlain(t *testing.T, c *rest.Config) <-chan string {
	t.Helper()
	seen, m := make(chan string, 100), newManager(t, c)
	err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			seen <- r.Name
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	start(t, m)
	return seen
}
