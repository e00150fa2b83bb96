package credentials

import (
	"io"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// transport sends each request with the credentials that are good now.
type transport struct {
	vault *vault
	base  *url.URL // of the requests, whatever the server is by now
}

// RoundTrip sends the request, and sends it again with others if its credentials are refused.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	repeatable := r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
	if r.Body != nil && repeatable {
		defer func() { _ = r.Body.Close() }() // each attempt has a body of its own
	}
	for asked := (*session)(nil); ; {
		s, err := t.vault.session(r.Context())
		if err != nil {
			if !repeatable {
				_ = r.Body.Close()
			}
			return nil, err
		}
		sent := time.Now()
		answer, err := t.send(r, s)
		if err != nil || answer.StatusCode != http.StatusUnauthorized {
			return answer, err
		}
		changed, err := t.vault.doubt(r.Context(), s, sent)
		if err != nil || !repeatable || !changed && asked == s {
			return answer, nil //nolint:nilerr // it is the server's answer
		}
		asked = s
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // the connection can be used again then
		_ = answer.Body.Close()
	}
}

// send sends the request once.
func (t *transport) send(r *http.Request, s *session) (*http.Response, error) {
	own, err := s.request(r, t.base)
	if err != nil {
		return nil, err
	}
	answer, err := s.send.RoundTrip(own)
	if err == nil && answer.StatusCode != http.StatusUnauthorized {
		t.vault.proven(s)
	}
	return answer, err
}

// around is a transport of client-go with the credentials that are good now. One that makes connections for streams,
// as for commands in pods, needs its own connection.
func (v *vault) around(base *url.URL, next http.RoundTripper) http.RoundTripper {
	if ordinary(next) {
		return &transport{v, base}
	}
	return streaming{v, next}
}

// ordinary tells whether a transport is one for requests. Client-go may have put it into another one, for files of CAs
// that change.
func ordinary(next http.RoundTripper) bool {
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

// streaming puts the credentials on requests of another transport. It repeats nothing.
type streaming struct {
	vault *vault
	next  http.RoundTripper
}

// RoundTrip sends the request.
func (t streaming) RoundTrip(r *http.Request) (*http.Response, error) {
	s, err := t.vault.session(r.Context())
	if err != nil {
		return nil, err
	}
	send, err := rest.HTTPWrappersForConfig(s.config, t.next)
	if err != nil {
		return nil, err
	}
	return send.RoundTrip(r)
}
