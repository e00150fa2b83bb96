package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// maxReviewTimeout is the longest time that the API server waits for a response.
const maxReviewTimeout = 30 * time.Second

// overloadedRefusal returns a refusal after which the client should retry. API servers do so until their own timeout.
func overloadedRefusal(err error) error {
	return &review.ResponseError{Status: http.StatusServiceUnavailable, Err: err, IsRetryable: true}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := s.serveReview(w, r)
	if err != nil {
		s.sendRefusal(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // an error means that the client has disconnected
}

// serveReview returns the body of the response.
func (s *Server) serveReview(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	endpoint, known := s.findEndpoint(r.URL.Path)
	switch {
	case !known:
		return nil, &review.ResponseError{Status: http.StatusNotFound, Err: fmt.Errorf(
			"operator %q has no handler of admission at this path", s.options.Operator)}
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return nil, &review.ResponseError{Status: http.StatusMethodNotAllowed,
			Err: errors.New("admission reviews come by POST")}
	}
	// Handlers may need indices or the startup.
	if err := s.CheckReadiness(r); err != nil {
		return nil, &review.ResponseError{Status: http.StatusServiceUnavailable, Err: err}
	}
	// The body stays in memory until the response is complete, because the review refers to its bytes.
	in, err := s.readBody(w, r)
	defer s.pool.releaseBody(in)
	if err != nil {
		return nil, err
	}
	// The values can take many times the memory of the text, so they are estimated before they are decoded.
	weight := review.EstimateMemory(in.body)
	// From here on, the request counts twice: with its body and with its values.
	place, err := s.pool.acquireSlot(r.Context(), in.class, weight)
	switch {
	case errors.Is(err, errOutOfMemory):
		return nil, overloadedRefusal(err)
	case err != nil:
		return nil, err
	}
	defer place.releaseSlot()
	return s.callReviewer(r, endpoint, review.EndpointRequest{Body: in.body,
		ExceedsMemory: weight > s.pool.memoryLimit})
}

// callReviewer calls the reviewer, and limits its time. A panic becomes an error.
func (s *Server) callReviewer(
	r *http.Request, endpoint Endpoint, asked review.EndpointRequest,
) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(logf.IntoContext(r.Context(), s.options.Log), responseTimeout(r))
	defer cancel()
	err = panics.Contain(func() error {
		asked.HandlerID, asked.Type = endpoint.handlerID(), endpoint.Type
		asked.Headers, asked.PeerCertificates = headersOf(r), verifiedCertificates(r)
		response, err := s.options.Reviewer.Review(ctx, asked)
		if err != nil {
			return err
		}
		answer, err = response.EncodeJSON()
		return err
	})
	return answer, err
}

// handlerID returns the id of the handlers, or nil for all of them.
func (e *Endpoint) handlerID() *string {
	if e.Handler == "" {
		return nil
	}
	return &e.Handler
}

// headersOf returns the headers as the client has sent them: net/http removes Host from them.
func headersOf(r *http.Request) http.Header {
	all := maps.Clone(r.Header)
	if r.Host != "" {
		all["Host"] = []string{r.Host}
	}
	return all
}

// responseTimeout returns how long the API server waits for the response. The query parameter timeout contains this
// time.
func responseTimeout(r *http.Request) time.Duration {
	said, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || said <= 0 {
		return maxReviewTimeout
	}
	return min(said, maxReviewTimeout)
}

// verifiedCertificates returns the certificates of the client if they were verified. A server can also request
// certificates without verifying them.
func verifiedCertificates(r *http.Request) []*x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.PeerCertificates
}

// sendRefusal sends an error to the client. It logs errors of this process, and errors of requests only at the debug
// level.
func (s *Server) sendRefusal(w http.ResponseWriter, r *http.Request, err error) {
	status := review.StatusOf(err)
	if refused := (*review.ResponseError)(nil); errors.As(err, &refused) && refused.IsRetryable {
		w.Header().Set("Retry-After", "1")
	}
	log := s.options.Log.WithValues("path", r.URL.Path, "status", status)
	gone := r.Context().Err() != nil // the client has disconnected, and the error is only a consequence
	if status == http.StatusInternalServerError && !gone {
		log.Error(err, "Cannot answer an admission review", panics.StackFields(err)...)
	} else {
		log.V(1).Info("Refused a request for an admission review", "reason", err.Error())
	}
	http.Error(w, err.Error(), status)
}
