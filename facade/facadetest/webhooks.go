package facadetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/reviewing"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
)

var errGone = errors.New("connect: connection refused")

// webhooks lead the API server in memory to the admission handlers of an operator, without a port or a certificate.
type webhooks struct {
	config *rest.Config
	gate   *gate
	mux    *http.ServeMux
	server *memapi.Server
	remove func() // from the server

	mu        sync.Mutex
	hooks     []reviewing.Hook
	announced chan struct{} // closed when there are hooks
}

func newWebhooks(config *rest.Config, g *gate) *webhooks {
	return &webhooks{
		config: config, gate: g, mux: http.NewServeMux(), remove: func() {}, announced: make(chan struct{}),
	}
}

// inProcess returns the option that the operator runs with.
func (w *webhooks) inProcess() *kit.Webhooks {
	return &kit.Webhooks{Server: w, Attach: w.attach, Announce: w.announce, Announced: w.announced}
}

// attach looks for the server.
func (w *webhooks) attach() bool {
	if w.config == nil || w.config.Transport == nil {
		return false
	}
	w.server = memapi.ServerOf(w.config.Transport)
	return w.server != nil
}

// announce takes over the entries of the operator, and has the server ask from the first time on.
func (w *webhooks) announce(configurations []client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.hooks == nil
	w.hooks = reviewing.HooksOf(configurations)
	if first {
		w.remove = w.server.AddReviewer(w.review, func() bool { return !w.gate.isShut() })
		close(w.announced)
	}
}

// end lets the server ask no more.
func (w *webhooks) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove()
}

// NeedLeaderElection is false: the server is there for all.
func (w *webhooks) NeedLeaderElection() bool { return false }

// Register adds a path.
func (w *webhooks) Register(path string, handler http.Handler) { w.mux.Handle(path, handler) }

// Start has nothing to do but to wait.
func (w *webhooks) Start(ctx context.Context) error { <-ctx.Done(); return nil }

// StartedChecker is content from the beginning.
func (w *webhooks) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux has the paths.
func (w *webhooks) WebhookMux() *http.ServeMux { return w.mux }

// review asks the handlers that the request is for, one after the other.
func (w *webhooks) review(
	ctx context.Context, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error) {
	w.mu.Lock()
	hooks := w.hooks
	w.mu.Unlock()
	return reviewing.Reviews{Server: w.server, Call: w.call}.Review(ctx, hooks, mutating, request)
}

// call asks one handler. A killed operator does not answer.
func (w *webhooks) call(
	ctx context.Context, h reviewing.Hook, asked *admissionv1.AdmissionRequest,
) (*admissionv1.AdmissionResponse, error) {
	if w.gate.isShut() {
		return nil, errGone
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{Request: asked})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	query := url.Values{"timeout": {h.Timeout.String()}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"?"+query.Encode(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	answer, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		w.mux.ServeHTTP(answer, r)
	}()
	select {
	case <-done:
	case <-w.gate.killed:
		return nil, errGone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("the server answers with %d: %s", answer.Code, answer.Body)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("the answer is not a review: %w", err)
	}
	return review.Response, nil
}
