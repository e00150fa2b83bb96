package certificates_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

const (
	operator, managedName = "ops.example.org", "shared"
	lifetime, overlap     = time.Hour, 5 * time.Minute
	// propagation is how long an API server uses a former webhook configuration, and interval is that of requests.
	propagation, interval = 3 * time.Second, time.Second
	// requestPause is the time between two requests with the same certificate and the same bundle.
	requestPause = 30 * time.Second
	// changeover is the time in which any change of certificates is over.
	changeover = 3 * overlap
)

var (
	secrets = memapi.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	widgets = memapi.Resource{
		Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
	}
	validating = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
		Plural: "validatingwebhookconfigurations", Plain: true,
	}
	mutating = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration",
		Plural: "mutatingwebhookconfigurations", Plain: true,
	}
)

// cluster is an API server that sends admission requests to replicas.
type cluster struct {
	*memapi.Server
	t        *testing.T
	replicas []*replica
	// effectiveEntries are the entries that the API server uses; sent and refused count its requests.
	effectiveEntries              atomic.Pointer[[]admissionregistrationv1.ValidatingWebhook]
	sentRequests, refusedRequests int
	startedReplicas               int // replicas so far
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Server: memapi.New(), t: t}
	for _, resource := range []memapi.Resource{secrets, widgets, validating, mutating} {
		c.Install(resource)
	}
	return c
}

// replica is a process of the operator behind a Service.
type replica struct {
	*admission.WebhookServer
	host           string
	conns          chan net.Conn
	isStopped      atomic.Bool
	lastReviewKey  string    // the certificate and the bundle of the last request
	lastReviewTime time.Time // when that was sent
	cancel         context.CancelFunc
	done           chan error
}

// openRotation returns the certificates of a replica.
func openRotation(t *testing.T, c *cluster, r certificates.Rotation) certificates.Source {
	t.Helper()
	client, err := configurations.NewClient(memapi.Config(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Ledger = configurations.NewRecords(configurations.Options{
		Client: client, Name: managedName, Operator: operator,
	}, false)
	source, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// start starts a replica behind a Service, and waits until its entries are in use.
func (c *cluster) start(service string) *replica {
	c.t.Helper()
	c.startedReplicas++
	client, err := certificates.NewClient(memapi.Config(c), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	source := openRotation(c.t, c, certificates.Rotation{
		Client: client, Namespace: "ns", Name: "webhooks", Operator: operator,
		Hosts: tunnels.ServiceHosts("ns", service), Lifetime: lifetime, Overlap: overlap,
	})
	handler := &handlers.Handler{ID: "quota", Family: handlers.Admitting}
	handler.Call = func(context.Context, *handlers.Invocation) error { return nil }
	kind := schema.GroupVersionKind{Group: widgets.Group, Version: widgets.Version, Kind: widgets.Kind}
	made, err := admission.New(admission.Options{
		Operator: operator, Config: memapi.Config(c), HTTPClient: &http.Client{Transport: c}, Managed: managedName,
		Registrations: []admission.RegisteredHandler{{Selector: discovery.OfKind(kind), Handler: handler}},
		Identity:      fmt.Sprint(c.startedReplicas), HandOver: time.Second, Certificates: source, ScanOnce: true,
		ClientConfig: func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
			return tunnels.ByService("ns", service, 443, "", bundle)
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	r := &replica{
		WebhookServer: made, host: service + ".ns.svc", conns: make(chan net.Conn), done: make(chan error, 1),
	}
	on := webhook.NewServer(webhook.Options{})
	if err := made.Register(on); err != nil {
		c.t.Fatal(err)
	}
	server := &http.Server{Handler: on.WebhookMux()} //nolint:gosec // it has no network
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(c.t.Context())
	go func() {
		_ = server.Serve(tls.NewListener(r, &tls.Config{GetCertificate: made.GetCertificate}))
	}()
	go func() {
		err := made.Start(ctx)
		r.isStopped.Store(true)
		_ = server.Close()
		r.done <- err
	}()
	c.replicas = append(c.replicas, r)
	time.Sleep(interval)
	return r
}

// Accept, Close and Addr make the replica a listener.
func (r *replica) Accept() (net.Conn, error) {
	conn, open := <-r.conns
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (r *replica) Close() error { close(r.conns); return nil }

func (*replica) Addr() net.Addr { return &net.UnixAddr{} }

// stop ends a replica like a signal: requests are sent until it has ended.
func (c *cluster) stop(r *replica) {
	c.t.Helper()
	r.cancel()
	c.run(2 * interval)
	if err := <-r.done; err != nil {
		c.t.Errorf("the process ends without an error: got %v", err)
	}
	c.replicas = slices.DeleteFunc(c.replicas, func(one *replica) bool { return one == r })
}

// stopAll ends the replicas that are left.
func (c *cluster) stopAll() {
	for _, r := range c.replicas {
		r.cancel()
		<-r.done
	}
	time.Sleep(time.Minute) // connections are closed
}

// run sends requests for some time, to each replica that is ready.
func (c *cluster) run(duration time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(duration); time.Now().Before(end); {
		synctest.Wait() // of two replicas that write at once, the younger one wins
		next := c.entries()
		time.AfterFunc(propagation, func() { c.effectiveEntries.Store(&next) })
		for _, entry := range c.currentEntries() {
			c.review(entry.ClientConfig)
		}
		time.Sleep(interval)
	}
}

// currentEntries are the entries that the API server uses now.
func (c *cluster) currentEntries() []admissionregistrationv1.ValidatingWebhook {
	if entries := c.effectiveEntries.Load(); entries != nil {
		return *entries
	}
	return nil
}

func (c *cluster) entries() []admissionregistrationv1.ValidatingWebhook {
	data, err := json.Marshal(c.Object(validating, "", managedName))
	var decoded admissionregistrationv1.ValidatingWebhookConfiguration
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return decoded.Webhooks
}

// review sends a request to all replicas that a Service may lead to.
func (c *cluster) review(to admissionregistrationv1.WebhookClientConfig) {
	c.t.Helper()
	host, asked := to.Service.Name+"."+to.Service.Namespace+".svc", 0
	for i, r := range c.replicas {
		if r.host != host || r.isStopped.Load() || r.CheckReadiness(nil) != nil {
			continue
		}
		asked++
		if !r.isDue(host, to.CABundle) {
			continue
		}
		c.sentRequests++
		if err := r.sendReview(host, *to.Service.Path, to.CABundle); err != nil {
			c.refusedRequests++
			c.t.Errorf("replica %d refuses a request to %s at %s: %v", i, host, time.Now().Format(time.TimeOnly), err)
		}
	}
	if asked == 0 {
		c.refusedRequests++
		c.t.Errorf("no replica is ready at %s to answer for %s", time.Now().Format(time.TimeOnly), host)
	}
}

// isDue reports whether the answer to a request can differ from the last one, or the last one is some time ago.
func (r *replica) isDue(host string, bundle []byte) bool {
	served, err := r.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
	next := fmt.Sprint(host, err)
	if err == nil {
		next += served.Leaf.SerialNumber.String() + string(bundle)
	}
	isDue := r.lastReviewKey != next || time.Since(r.lastReviewTime) >= requestPause
	if isDue {
		r.lastReviewKey, r.lastReviewTime = next, time.Now()
	}
	return isDue
}

const body = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",
"userInfo":{"username":"me"},"resource":{"group":"example.org","version":"v1","resource":"widgets"},
"kind":{"group":"example.org","version":"v1","kind":"Widget"},"object":{"metadata":{"name":"x"}}}}`

// sendReview sends a request as an API server does that trusts the bundle alone.
func (r *replica) sendReview(host, path string, bundle []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{
		DisableKeepAlives: true, TLSHandshakeTimeout: time.Second,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			r.conns <- theirs
			return ours, nil
		},
	}
	answer, err := (&http.Client{Transport: transport}).Post("https://"+host+path, "application/json",
		strings.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(text), `"allowed":true`)) {
		err = fmt.Errorf("got %d %s", answer.StatusCode, text)
	}
	return err
}

// secretData is the content of the Secret.
func (c *cluster) secretData() map[string][]byte {
	encoded, _ := c.Object(secrets, "ns", "webhooks")["data"].(map[string]any)
	data := map[string][]byte{}
	for key, value := range encoded {
		data[key], _ = base64.StdEncoding.DecodeString(value.(string))
	}
	return data
}

// putSecret changes keys of the Secret, as a tenant does.
func (c *cluster) putSecret(changes map[string][]byte) {
	encoded := map[string]any{}
	data := c.secretData()
	for key, value := range changes {
		data[key] = value
	}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	c.Put(secrets, map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "webhooks"}, "data": encoded,
	})
}

// play runs a course of events, and wants no refused request.
func play(t *testing.T, course func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		course(c)
		c.stopAll()
		if c.sentRequests < 20 || c.refusedRequests > 0 {
			t.Errorf("refused requests: want 0 of 20 or more, got %d of %d", c.refusedRequests, c.sentRequests)
		}
		t.Logf("%d requests, %d refused", c.sentRequests, c.refusedRequests)
	})
}
