package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// runningOperator is an operator inside the test process.
type runningOperator struct {
	logs     *gbytes.Buffer
	requests *requests
	cancel   context.CancelFunc
	done     chan struct{}
	once     sync.Once
}

func loggerTo(w io.Writer) logr.Logger {
	return zap.New(zap.WriteTo(w), zap.UseDevMode(false))
}

// start runs operators in one manager until the end of the spec at the latest.
func start(operators ...*kopf.Operator) *runningOperator {
	GinkgoHelper()
	return startWith(config, newRequests(), operators...)
}

// startAs is like start with other credentials.
func startAs(config *rest.Config, operators ...*kopf.Operator) *runningOperator {
	GinkgoHelper()
	return startWith(config, newRequests(), operators...)
}

// startWith is like start over a connection that can lose requests.
func startWith(config *rest.Config, connection *requests, operators ...*kopf.Operator) *runningOperator {
	GinkgoHelper()
	r := &runningOperator{logs: gbytes.NewBuffer(), requests: connection, done: make(chan struct{})}
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return r.requests.wrap(next) })
	manager, err := ctrl.NewManager(own, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: loggerTo(io.MultiWriter(GinkgoWriter, r.logs)),
	})
	Expect(err).NotTo(HaveOccurred())
	for _, op := range operators {
		Expect(op.SetupWithManager(manager)).To(Succeed())
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer GinkgoRecover()
		defer close(r.done)
		Expect(manager.Start(ctx)).To(Succeed())
	}()
	DeferCleanup(r.stop)
	return r
}

// stop ends the operator gracefully and waits.
func (r *runningOperator) stop() {
	r.once.Do(func() {
		r.cancel()
		Eventually(r.done).Should(BeClosed())
	})
}

// calls records handler calls in order, from any goroutine.
type calls struct {
	mu      sync.Mutex
	entries []string
}

func (c *calls) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, fmt.Sprintf(format, args...))
}

// list returns a copy of the recorded calls, for use with Eventually.
func (c *calls) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.entries...)
}
