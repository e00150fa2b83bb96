package e2e_test

import (
	"context"
	"fmt"
	"io"
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
	return startAs(config, operators...)
}

// startAs is like start with other credentials.
func startAs(config *rest.Config, operators ...*kopf.Operator) *runningOperator {
	GinkgoHelper()
	r := &runningOperator{logs: gbytes.NewBuffer(), requests: newRequests(), done: make(chan struct{})}
	own := rest.CopyConfig(config)
	own.Wrap(r.requests.wrap)
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

// startManaged runs one operator in a manager with the given options. Unlike start, it leaves the shutdown to the spec:
// the returned function stops the manager and returns its error.
func startManaged(config *rest.Config, options ctrl.Options, op *kopf.Operator) (*runningOperator, func() error) {
	GinkgoHelper()
	r := &runningOperator{logs: gbytes.NewBuffer(), requests: newRequests(), done: make(chan struct{})}
	own := rest.CopyConfig(config)
	own.Wrap(r.requests.wrap)
	options.Scheme, options.Metrics = scheme.Scheme, metricsserver.Options{BindAddress: "0"}
	options.Logger = loggerTo(io.MultiWriter(GinkgoWriter, r.logs))
	manager, err := ctrl.NewManager(own, options)
	Expect(err).NotTo(HaveOccurred())
	Expect(op.SetupWithManager(manager)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	var last error
	go func() {
		defer close(r.done)
		last = manager.Start(ctx)
	}()
	DeferCleanup(r.stop)
	return r, func() error {
		r.stop()
		return last
	}
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
