package e2e_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// faults is an http.RoundTripper that breaks requests as the spec configures.
type faults struct {
	next http.RoundTripper

	mu sync.Mutex
	// Replaces the response; two nils send the request to the server.
	respond func(*http.Request) (*http.Response, error)
	streams map[*stream]bool
}

// stream is the response body of a watch.
type stream struct {
	io.ReadCloser
	faults *faults
}

func (s *stream) Close() error {
	s.faults.mu.Lock()
	delete(s.faults.streams, s)
	s.faults.mu.Unlock()
	return s.ReadCloser.Close()
}

// over returns a client configuration whose requests pass through the faults.
func (f *faults) over(config *rest.Config) *rest.Config {
	f.streams = map[*stream]bool{}
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.next = next
		return f
	})
	return own
}

func (f *faults) RoundTrip(request *http.Request) (*http.Response, error) {
	f.mu.Lock()
	answer := f.respond
	f.mu.Unlock()
	if answer != nil {
		if response, err := answer(request); response != nil || err != nil {
			return response, err
		}
	}
	response, err := f.next.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		body := &stream{response.Body, f}
		f.streams[body] = true
		response.Body = body
	}
	return response, err
}

// answering sets the function that replaces responses; nil lets all requests through.
func (f *faults) answering(answer func(*http.Request) (*http.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.respond = answer
}

// cut closes all open watches.
func (f *faults) cut() {
	f.mu.Lock()
	open := f.streams
	f.streams = map[*stream]bool{}
	f.mu.Unlock()
	for body := range open {
		_ = body.ReadCloser.Close()
	}
}

var errDown = errors.New("the connection is down, as the spec wants it")

// status returns a response with this code.
func status(request *http.Request, code int, headers ...string) *http.Response {
	response := &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: request,
		Header: http.Header{
			"Content-Type": []string{"text/plain"},
		}, Body: io.NopCloser(strings.NewReader("the spec wants it")),
	}
	for i := 0; i+1 < len(headers); i += 2 {
		response.Header.Set(headers[i], headers[i+1])
	}
	return response
}

// isRead reports whether a request is a list or a watch of a resource.
func isRead(request *http.Request, plural string) bool {
	return request.Method == http.MethodGet && path.Base(request.URL.Path) == plural
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

// createMany creates many objects concurrently.
func createMany(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	queue := make(chan *unstructured.Unstructured)
	failures := make(chan error, len(objects))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for obj := range queue {
				if err := api.Create(ctx, obj); err != nil {
					failures <- err
				}
			}
		})
	}
	for _, obj := range objects {
		queue <- obj
	}
	close(queue)
	group.Wait()
	Expect(failures).To(BeEmpty())
}
