package e2e_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// cuttableTransport is a connection to the API server that can be cut, as when a process dies.
type cuttableTransport struct {
	next  http.RoundTripper
	isCut atomic.Bool
}

func (c *cuttableTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.isCut.Load() {
		return nil, errors.New("the process is dead")
	}
	return c.next.RoundTrip(r)
}

// replica is a process that reviews config maps with a label.
type replica struct {
	backend   string
	transport *cuttableTransport
	done      chan struct{}
	cancels   [2]context.CancelFunc // [0] ends the leader tasks, [1] the server
}

// startReplica starts a replica and adds it to the balancer.
func startReplica(namespace, name string, b *balancer, asked *atomic.Int64) *replica {
	GinkgoHelper()
	r := &replica{transport: &cuttableTransport{}, done: make(chan struct{}), backend: freeAddress()}
	connected := rest.CopyConfig(config)
	connected.Wrap(func(next http.RoundTripper) http.RoundTripper { r.transport.next = next; return r.transport })
	transport, err := rest.HTTPClientFor(connected)
	Expect(err).NotTo(HaveOccurred())
	secrets, err := certificates.NewClient(connected, transport)
	Expect(err).NotTo(HaveOccurred())
	source, err := certificates.Rotation{
		Client: secrets, Namespace: namespace, Name: "certificate", Operator: "rolling.example.org",
		Hosts: []string{"127.0.0.1"}, Lifetime: time.Minute, Overlap: 10 * time.Second,
	}.Open()
	Expect(err).NotTo(HaveOccurred())
	host, port, err := net.SplitHostPort(r.backend)
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.Atoi(port)
	Expect(err).NotTo(HaveOccurred())
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: number, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = source.GetCertificate
		}},
	})
	made, err := admission.New(admission.Options{
		Operator: "rolling.example.org", Registrations: []admission.RegisteredHandler{refusingHandler(namespace,
			asked)},
		Config: connected, HTTPClient: transport, Path: "/rolling", Certificates: source, Managed: "e2e-" + namespace,
		ClientConfig: func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
			return tunnels.ByURL("https://"+b.address()+"/rolling", bundle)
		},
		StartedChecker: server.StartedChecker(), Identity: name, HandOver: time.Second, Log: loggerTo(GinkgoWriter),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(made.Register(server)).To(Succeed())
	r.run(server.Start, made.Start)
	b.add(r.backend)
	return r
}

// run keeps the server running until the other tasks have ended, as managers do.
func (r *replica) run(serve, tell func(context.Context) error) {
	var all sync.WaitGroup
	for i, run := range []func(context.Context) error{tell, serve} {
		ctx, end := context.WithCancel(context.Background())
		r.cancels[i] = end
		all.Go(func() {
			defer GinkgoRecover()
			Expect(run(ctx)).To(Succeed())
			if i == 0 {
				r.cancels[1]()
			}
		})
	}
	go func() { all.Wait(); close(r.done) }()
}

// stop ends the process gracefully, as on a signal.
func (r *replica) stop(b *balancer) {
	r.cancels[0]()
	<-r.done
	b.remove(r.backend, false)
}

// kill ends the process without cleanup.
func (r *replica) kill(b *balancer) {
	r.transport.isCut.Store(true)
	b.remove(r.backend, true)
	r.cancels[0]()
	r.cancels[1]()
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// refusingHandler returns a handler that rejects config maps with the key "refuse".
func refusingHandler(namespace string, asked *atomic.Int64) admission.RegisteredHandler {
	return admission.RegisteredHandler{
		Selector: discovery.OfKind(corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		Handler: &handlers.Handler{
			ID: "Refusal", Family: handlers.Admitting, Operations: []string{"CREATE"},
			Labels: labels.SelectorFromSet(labels.Set{"reviewed-in": namespace}),
			Call: func(_ context.Context, call *handlers.Invocation) error {
				asked.Add(1)
				if data, _ := call.Object["data"].(map[string]any); data["refuse"] != nil {
					return errors.New("it says so itself")
				}
				return nil
			},
		},
	}
}

// createDryRun creates a config map as a dry run.
func createDryRun(ctx context.Context, namespace, name string, refuse bool) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"reviewed-in": namespace},
	}}
	if refuse {
		object.Data = map[string]string{"refuse": "yes"}
	}
	return api.Create(ctx, object, client.DryRunAll)
}

var _ = Describe("A rolling update of operators with admission", func() {
	It("reviews every object without false rejections, also while certificates are renewed", func(ctx SpecContext) {
		place, b, asked := namespace(ctx), newBalancer(), &atomic.Int64{}
		first := startReplica(place, "first", b, asked)
		Eventually(func() error {
			return createDryRun(ctx, place, "bad",
				true)
		}).Should(MatchError(ContainSubstring("says so")))

		var requests sync.Mutex
		streaming, stop := context.WithCancel(ctx)
		count, ended := 0, make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(ended)
			for ; streaming.Err() == nil; count++ {
				requests.Lock()
				refused, taken := createDryRun(ctx, place, fmt.Sprint("bad-", count), true),
					createDryRun(ctx, place, "good", false)
				requests.Unlock()
				Expect(refused).To(MatchError(ContainSubstring("it says so itself")))
				Expect(taken).NotTo(HaveOccurred())
			}
		}()

		By("updating to a second version")
		second := startReplica(place, "second", b, asked)
		Eventually(writerOf(ctx, place)).Should(ContainSubstring(`"second"`))
		first.stop(b)

		By("updating to a third one when the second one is killed")
		third := startReplica(place, "third", b, asked)
		Eventually(writerOf(ctx, place)).Should(ContainSubstring(`"third"`))
		requests.Lock() // a request to a dead process cannot be saved
		second.kill(b)
		// The same applies to a connection whose end the API server has not detected yet.
		Eventually(func() error { return createDryRun(ctx, place, "good", false) }).Should(Succeed())
		requests.Unlock()

		By("waiting until the first certificates have expired")
		for range 2 {
			bundle := bundleOf(ctx, place)
			Eventually(func() string { return bundleOf(ctx, place) }).ShouldNot(Equal(bundle))
		}
		stop()
		<-ended
		GinkgoWriter.Printf("%d objects of either kind, %d reviews\n", count, asked.Load())
		Expect(asked.Load()).To(BeNumerically(">=", 2*count))

		By("stopping the last replica")
		before := asked.Load()
		Expect(api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "unlabelled"},
		})).To(Succeed())
		Expect(asked.Load()).To(Equal(before), "an object without the label is not reviewed")
		third.stop(b)
		Eventually(func() error { return createDryRun(ctx, place, "bad", true) }).Should(Succeed())
	}, SpecTimeout(waitTimeout))
})

// writerOf returns the mark of the operator in its webhook configuration.
func writerOf(ctx context.Context, namespace string) func() string {
	return func() string {
		var object admissionregistrationv1.ValidatingWebhookConfiguration
		_ = api.Get(ctx, client.ObjectKey{Name: "e2e-" + namespace}, &object)
		return object.Annotations["rolling.example.org/webhooks"]
	}
}

// bundleOf returns the CA bundle that the API server uses.
func bundleOf(ctx context.Context, namespace string) string {
	GinkgoHelper()
	var object admissionregistrationv1.ValidatingWebhookConfiguration
	Expect(api.Get(ctx, client.ObjectKey{Name: "e2e-" + namespace}, &object)).To(Succeed())
	if len(object.Webhooks) == 0 {
		return ""
	}
	return string(object.Webhooks[0].ClientConfig.CABundle)
}
