package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// headerTimeout limits the time for the headers of a request, idleTimeout the time between two requests. They equal
	// those of controller-runtime's webhook server.
	headerTimeout, idleTimeout = 32 * time.Second, 90 * time.Second
	// shutdownTimeout limits the time for running requests at the end.
	shutdownTimeout = time.Minute
)

// PlainServer is a webhook.Server without TLS, for use behind a proxy that terminates TLS. The server of
// controller-runtime always uses TLS.
type PlainServer struct {
	address string
	mux     *http.ServeMux
	// isListening is set by Start and read by readiness checks.
	isListening atomic.Bool
}

var _ webhook.Server = (*PlainServer)(nil)

// NewPlainServer returns a server for a host and a port.
func NewPlainServer(address string) *PlainServer {
	return &PlainServer{address: address, mux: http.NewServeMux()}
}

// NeedLeaderElection returns false, because every replica serves webhooks.
func (*PlainServer) NeedLeaderElection() bool { return false }

// Register sets the handler of a path. It panics if the path already has one, as the server of controller-runtime does.
func (s *PlainServer) Register(path string, hook http.Handler) { s.mux.Handle(path, hook) }

// WebhookMux returns the multiplexer with all handlers.
func (s *PlainServer) WebhookMux() *http.ServeMux { return s.mux }

// StartedChecker returns a check that fails until the server listens.
func (s *PlainServer) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.isListening.Load() {
			return errors.New("the webhook server does not listen yet")
		}
		return nil
	}
}

// Start serves until the context ends, and then finishes running requests.
func (s *PlainServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("serving webhooks without TLS: %w", err)
	}
	// The listener queues connections, so the server is reachable before Serve is called.
	s.isListening.Store(true)
	logf.FromContext(ctx).Info("Serving webhooks without TLS", "address", listener.Addr().String())
	server := &manager.Server{
		Name: "webhooks", Listener: listener, ShutdownTimeout: ptr.To(shutdownTimeout),
		Server: &http.Server{Handler: s.mux, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout},
	}
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("serving webhooks without TLS: %w", err)
	}
	return nil
}
