package credentials

import (
	"io"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// transport sends each request with the current credentials. It replaces the transport of client-go, so that all
// clients of the connection follow a new login.
type transport struct {
	vault   *vault
	baseURL *url.URL // the base URL of incoming requests, even if the server has changed
}

// RoundTrip sends the request. If its credentials are refused, it sends the request again with other credentials.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	// A streamed body can be sent only once.
	repeatable := r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
	if r.Body != nil && repeatable {
		defer func() { _ = r.Body.Close() }() // each attempt has its own body
	}
	for asked := (*session)(nil); ; {
		// This waits while no valid credentials exist, so callers see no authentication error in between.
		s, err := t.vault.currentSession(r.Context())
		if err != nil {
			// A round tripper must close the body in any case.
			if !repeatable {
				_ = r.Body.Close()
			}
			return nil, err
		}
		// A check of the credentials before this time cannot explain the response.
		sent := time.Now()
		answer, err := t.sendOnce(r, s)
		if err != nil || answer.StatusCode != http.StatusUnauthorized {
			return answer, err
		}
		// If the same session is refused again although its credentials are valid, the 401 has another reason. Then it
		// is the final response.
		changed, err := t.vault.verifySession(r.Context(), s, sent)
		if err != nil || !repeatable || !changed && asked == s {
			return answer, nil //nolint:nilerr // it is the server's answer
		}
		asked = s
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // a drained connection can be reused
		_ = answer.Body.Close()
	}
}

// sendOnce sends the request once with the session's credentials.
func (t *transport) sendOnce(r *http.Request, s *session) (*http.Response, error) {
	own, err := s.requestCopy(r, t.baseURL)
	if err != nil {
		return nil, err
	}
	answer, err := s.transport.RoundTrip(own)
	if err == nil && answer.StatusCode != http.StatusUnauthorized {
		t.vault.markProven(s)
	}
	return answer, err
}

// wrapTransport wraps a transport of client-go so that its requests have the current credentials. Transports for
// streams, such as commands in pods, must keep their own connection, so only their headers are set.
func (v *vault) wrapTransport(base *url.URL, next http.RoundTripper) http.RoundTripper {
	if isForRequests(next) {
		return &transport{v, base}
	}
	return streamTransport{v, next}
}

// isForRequests reports whether a transport is for normal requests. Client-go may wrap it, for example to reload CA
// files.
func isForRequests(next http.RoundTripper) bool {
	for {
		switch known := next.(type) {
		case *http.Transport:
			return true
		case utilnet.RoundTripperWrapper:
			next = known.WrappedRoundTripper()
		default:
			return false
		}
	}
}

// streamTransport adds the credentials to requests of another transport. It repeats nothing, because a stream cannot be
// sent again.
type streamTransport struct {
	vault *vault
	next  http.RoundTripper
}

// RoundTrip sends the request with the headers of the current credentials.
func (t streamTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s, err := t.vault.currentSession(r.Context())
	if err != nil {
		return nil, err
	}
	// The wrappers add only headers: the connection belongs to the other transport.
	send, err := rest.HTTPWrappersForConfig(s.config, t.next)
	if err != nil {
		return nil, err
	}
	return send.RoundTrip(r)
}
