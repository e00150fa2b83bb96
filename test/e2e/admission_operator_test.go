package e2e_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// countedServer is a webhook server that counts the requests to each path.
type countedServer struct {
	webhook.Server
	mu             sync.Mutex
	requestCounts  map[string]int
	getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

func newCountedServer(address string) *countedServer {
	GinkgoHelper()
	host, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.Atoi(port)
	Expect(err).NotTo(HaveOccurred())
	s := &countedServer{requestCounts: map[string]int{}}
	s.Server = webhook.NewServer(webhook.Options{Host: host, Port: number, TLSOpts: []func(*tls.Config){
		func(c *tls.Config) { c.GetCertificate = s.getCertificate },
	}})
	return s
}

// SetGetCertificate stores the operator's certificate source.
func (s *countedServer) SetGetCertificate(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) {
	s.getCertificate = get
}

// Register wraps the handler so that each request is counted before it is served.
func (s *countedServer) Register(path string, handler http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requestCounts[r.URL.Path]++
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
}

// of returns the number of requests to a path.
func (s *countedServer) of(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requestCounts[path]
}

// serve runs an operator in a manager with this webhook server until stop is called.
func serve(op *kopf.Operator, on webhook.Server) (stop func()) {
	GinkgoHelper()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: loggerTo(GinkgoWriter), WebhookServer: on,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(op.SetupWithManager(manager)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		Expect(manager.Start(ctx)).To(Succeed())
	}()
	stop = func() { cancel(); Eventually(done).Should(BeClosed()) }
	DeferCleanup(stop)
	return stop
}

type widgetAdmission = kopf.Admission[*v1.Widget]

const namespaceLabel = "admitted-in" // the label that holds the namespace of the spec

// admissionOperator returns an operator with handlers for every kind of admission request in one namespace.
func admissionOperator(place, address string, dryRuns *calls) *kopf.Operator {
	op := kopf.New("admission.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
		Managed: place + ".example.org", URL: "https://" + address, Secret: place + "/certificate",
	}})
	widgets := kopf.For(op, &v1.Widget{}).WithLabel(namespaceLabel, place)
	widgets.Mutate("owner", func(_ context.Context, a *widgetAdmission) error {
		if a.Object.Spec.Owner == "" {
			a.Object.Spec.Owner = "anonymous"
		}
		return nil
	})
	widgets.Mutate("tags", func(_ context.Context, a *widgetAdmission) error {
		a.Patch(func(w *v1.Widget) {
			if !slices.Contains(w.Spec.Tags, "patched") {
				w.Spec.Tags = append(w.Spec.Tags, "patched")
			}
		})
		return nil
	})
	widgets.Validate("size", func(_ context.Context, a *widgetAdmission) error {
		if a.DryRun {
			dryRuns.add("%s %s", a.Operation, a.Name)
		}
		return checkSize(a)
	}, kopf.Operations("CREATE", "UPDATE"))
	widgets.Validate("deletion", func(_ context.Context, a *widgetAdmission) error {
		if slices.Contains(a.Old.Spec.Tags, "kept") {
			return kopf.Deny(http.StatusLocked, "%s is kept, %s", a.Name, a.UserInfo.Username)
		}
		return nil
	}, kopf.Operations("DELETE"))
	widgets.Validate("phase", func(_ context.Context, a *widgetAdmission) error {
		if a.Object.Status.Phase == "Ready" && a.Old.Status.Phase == "Failed" {
			return errors.New("a failed widget cannot become ready")
		}
		return nil
	}, kopf.Subresource("status"))
	admitSubresources(op, place)
	return op
}

func checkSize(a *widgetAdmission) error {
	switch size := a.Object.Spec.Size; {
	case size > 10:
		return kopf.Deny(http.StatusRequestEntityTooLarge, "%d is too large for %s", size, a.Object.Spec.Owner)
	case a.HasOld && size < a.Old.Spec.Size:
		return apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, a.Name, errors.New("it shrinks"))
	case size > 5:
		a.Warning("%d is large", size)
	}
	return nil
}

// admitSubresources registers handlers for subresources that have their own kinds.
func admitSubresources(op *kopf.Operator, place string) {
	deployments := kopf.For(op, &appsv1.Deployment{})
	kopf.ForSubresource[*autoscalingv1.Scale](deployments, "scale").Validate("replicas",
		func(_ context.Context, a *kopf.Admission[*autoscalingv1.Scale]) error {
			if a.Namespace == place && a.Object.Spec.Replicas > 3 {
				return kopf.Deny(http.StatusForbidden, "%d replicas of %s are too many", a.Object.Spec.Replicas, a.Name)
			}
			return nil
		})
	pods := kopf.For(op, &corev1.Pod{})
	kopf.ForSubresource[*kopf.Unstructured](pods, "exec").Validate("commands",
		func(_ context.Context, a *kopf.Admission[*kopf.Unstructured]) error {
			if command := kopf.GetFieldOr(a.Object, "command", []string{}); slices.Contains(command, "rm") {
				return kopf.Deny(http.StatusForbidden, "%s of %q in %s: never", a.Operation, command, a.Name)
			}
			return nil
		}, kopf.Operations("CONNECT"))
}
