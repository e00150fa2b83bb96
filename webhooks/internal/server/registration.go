package server

import (
	"fmt"
	"net/http"
	"net/url"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// Register adds the server to a webhook server, such as that of a manager, for its path and all paths below it. If the
// path is taken, it returns an error, although the webhook server itself panics. If only the root is taken, it logs
// that.
func (s *Server) Register(on webhook.Server) error {
	if err := s.registerAt(on, s.options.Path+"/"); err != nil {
		return err
	}
	if s.options.AtRoot {
		if err := s.registerAt(on, "/"); err != nil {
			s.options.Log.V(1).Info("The paths of Kopf are not served", "reason", err.Error())
		}
	}
	return nil
}

// registerAt adds the server at one pattern of the multiplexer.
func (s *Server) registerAt(on webhook.Server, pattern string) error {
	taken := fmt.Errorf("the webhooks of operator %q cannot be served at %q: others are, by this webhook server",
		s.options.Operator, pattern)
	// A pattern of another handler for the same path is found by a lookup. The panic below also covers conflicts.
	if mux := on.WebhookMux(); mux != nil {
		_, found := mux.Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: pattern}})
		if found == pattern {
			return taken
		}
	}
	err := panics.Contain(func() error { on.Register(pattern, s); return nil })
	if err != nil {
		return fmt.Errorf("%w: %w", taken, err)
	}
	return nil
}
