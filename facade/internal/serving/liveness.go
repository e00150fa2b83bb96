package serving

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// LivenessProbe returns the results of the probes by the ids of their handlers.
type LivenessProbe func(context.Context) (map[string]any, error)

// LivenessEndpoint serves the results of the probes at one address as JSON. Kopf: --liveness.
type LivenessEndpoint struct {
	listener net.Listener
	server   http.Server
}

// ServeLiveness serves the results at the address, in the background. It returns an error if the address is in use.
func ServeLiveness(at *LivenessAddress, probe LivenessProbe) (*LivenessEndpoint, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", at.host)
	if err != nil {
		return nil, fmt.Errorf("serving the probes at %s: %w", at, err)
	}
	return startLivenessServer(listener, at.path, probe), nil
}

// startLivenessServer limits the time of clients that send or read slowly, or never finish. The probes have their own
// limits.
func startLivenessServer(listener net.Listener, path string, probe LivenessProbe) *LivenessEndpoint {
	e := &LivenessEndpoint{listener: listener, server: http.Server{
		Handler: LivenessHandler(path, probe), DisableGeneralOptionsHandler: true, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // these are errors of clients
	}}
	go func() { _ = e.server.Serve(listener) }()
	return e
}

// Addr returns the network address of the endpoint.
func (e *LivenessEndpoint) Addr() net.Addr { return e.listener.Addr() }

// Close stops the endpoint at once, including running requests.
func (e *LivenessEndpoint) Close() { _ = e.server.Close() }

// LivenessHandler answers requests for exactly this path: with the results, or with status 500 and the error as text.
func LivenessHandler(path string, probe LivenessProbe) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != path:
			http.NotFound(w, r)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
			return
		}
		// A result that cannot be encoded is an error like a failed probe, so nothing is written before the encoding.
		results, err := probe(r.Context())
		if err == nil {
			var body []byte
			if body, err = encodeResults(results); err == nil {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = w.Write(body)
				return
			}
		}
		http.Error(w, err.Error(), http.StatusInternalServerError)
	})
}

// encodeResults returns the results as a JSON object, an empty one without results. Its errors name the handler whose
// result cannot be encoded.
func encodeResults(results map[string]any) ([]byte, error) {
	whole := make(map[string]json.RawMessage, len(results))
	for id, result := range results {
		data, err := json.Marshal(result)
		if err != nil {
			return nil, fmt.Errorf("probe: the result of handler %q: %w", id, err)
		}
		whole[id] = data
	}
	return json.Marshal(whole)
}

// LivenessAddress is the parsed address of a liveness endpoint.
type LivenessAddress struct {
	// text is the URL as given, host the network address with the port.
	text, host, path string
}

// ParseLivenessAddress parses a URL such as http://0.0.0.0:8080/healthz. The default host is localhost, the default
// port 80.
func ParseLivenessAddress(text string) (*LivenessAddress, error) {
	location, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("no URL such as http://0.0.0.0:8080/healthz: %w", err)
	case location.Scheme != "http":
		return nil, fmt.Errorf(
			"%q: it must begin with http://, such as http://0.0.0.0:8080/healthz", text)
	case location.User != nil || location.RawQuery != "" || location.Fragment != "":
		return nil, fmt.Errorf("%q: it has more than a host, a port and a path", text)
	}
	host, port := cmp.Or(location.Hostname(), "localhost"), cmp.Or(location.Port(), "80")
	path := cmp.Or(location.Path, "/")
	// url.Parse accepts any digits as a port. Port 0 lets the system choose one.
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 && port != "0" {
		return nil, fmt.Errorf("%q: there is no port %s", text, port)
	}
	return &LivenessAddress{text: text, host: net.JoinHostPort(host, port), path: path}, nil
}

// String returns the URL as it was given.
func (a LivenessAddress) String() string { return a.text }
