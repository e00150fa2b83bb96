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

// errConnectionRefused has the text of a refused connection, as after the crash of a webhook server.
var errConnectionRefused = errors.New("connect: connection refused")

// webhooks connects the API server in memory to the admission handlers of an operator, without a port or a certificate.
// It implements the webhook server of a manager.
type webhooks struct {
	config *rest.Config
	gate   *gate
	mux    *http.ServeMux
	server *memapi.Server
	remove func() // removes the reviewer from the server

	mu        sync.Mutex
	hooks     []reviewing.Hook
	announced chan struct{} // closed when the first hooks are known
}

// newWebhooks returns webhooks that are not connected yet.
func newWebhooks(config *rest.Config, g *gate) *webhooks {
	return &webhooks{
		config: config, gate: g, mux: http.NewServeMux(), remove: func() {}, announced: make(chan struct{}),
	}
}

// standstillVariable returns the hooks for the operator's context.
func (w *webhooks) inProcess() *kit.FakeWebhooks {
	return &kit.FakeWebhooks{Server: w, Attach: w.attachServer, Announce: w.announceHooks, Announced: w.announced}
}

// attachServer finds the API server in memory behind the connection. It reports false for any other server.
func (w *webhooks) attachServer() bool {
	if w.config == nil || w.config.Transport == nil {
		return false
	}
	w.server = memapi.ServerOf(w.config.Transport)
	return w.server != nil
}

// announceHooks replaces the webhook entries of the operator. The first call also adds the reviewer to the server.
func (w *webhooks) announceHooks(configurations []client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.hooks == nil
	w.hooks = reviewing.HooksOf(configurations)
	if first {
		// After a kill, the server keeps calling the hooks, and fails like with a crashed webhook server, until the
		// next operator replaces this reviewer.
		w.remove = w.server.AddReviewer(w.reviewRequest, func() bool { return !w.gate.isShut() })
		close(w.announced)
	}
}

// removeReviewer removes the reviewer when the operator has ended.
func (w *webhooks) removeReviewer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove()
}

// NeedLeaderElection returns false: a webhook server serves on all replicas.
func (w *webhooks) NeedLeaderElection() bool { return false }

// Register adds the handler of a path.
func (w *webhooks) Register(path string, handler http.Handler) { w.mux.Handle(path, handler) }

// Start waits for the end of the context: there is no port to serve.
func (w *webhooks) Start(ctx context.Context) error { <-ctx.Done(); return nil }

// StartedChecker returns a check that always succeeds.
func (w *webhooks) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux returns the handlers of all paths.
func (w *webhooks) WebhookMux() *http.ServeMux { return w.mux }

// reviewRequest sends a request to all hooks that match it, one after the other. The lock is released first: a hook can
// call the API server, which can send another review.
func (w *webhooks) reviewRequest(
	ctx context.Context, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error) {
	w.mu.Lock()
	hooks := w.hooks
	w.mu.Unlock()
	return reviewing.Reviews{Server: w.server, Call: w.callHook}.ReviewRequest(ctx, hooks, mutating, request)
}

// callHook sends a request to one hook and returns its response. A killed operator does not respond.
func (w *webhooks) callHook(
	ctx context.Context, h reviewing.Hook, asked *admissionv1.AdmissionRequest,
) (*admissionv1.AdmissionResponse, error) {
	if w.gate.isShut() {
		return nil, errConnectionRefused
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{Request: asked})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout())
	defer cancel()
	query := url.Values{"timeout": {h.Timeout().String()}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL()+"?"+query.Encode(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	answer, done := httptest.NewRecorder(), make(chan struct{})
	// The handler runs on its own goroutine: after a kill or a timeout, it may never return.
	go func() {
		defer close(done)
		w.mux.ServeHTTP(answer, r)
	}()
	select {
	case <-done:
	case <-w.gate.killed.Done():
		return nil, errConnectionRefused
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
