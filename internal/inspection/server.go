package inspection

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// DefaultAddress is the default address of operators with a command line, and of their command explain.
const DefaultAddress = "localhost:8082"

// Server is a running server.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Serve starts to listen at an address, such as localhost:8082, and returns immediately. It returns an error if the
// address is not available, for example because it is in use.
func Serve(address string, handler http.Handler) (*Server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving at the debug address %s: %w", address, err)
	}
	// The check of the host name is for loopback addresses only: at other addresses, clients use names that are unknown
	// here.
	if at, ok := listener.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		handler = restrictToLocal(handler)
	}
	s := &Server{listener: listener, server: newLimitedServer(handler)}
	// Serve always returns an error after Close, so the error is ignored.
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// newLimitedServer returns a server with limits for time and header size, so that a client cannot block it.
func newLimitedServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: 16 << 10, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // these are errors of clients
	}
}

// Address returns the address that is served, with the actual port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close stops the server immediately, together with all running requests.
func (s *Server) Close() { _ = s.server.Close() }

// restrictToLocal rejects requests whose host is not a name of the local machine. This protects against DNS rebinding:
// a web page can make its own name resolve to 127.0.0.1, and a browser then treats the server as part of that page.
func restrictToLocal(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]") // without a port, an IPv6 address still has brackets
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			writeJSON(w, http.StatusForbidden,
				Problem{Error: "this address is for its own machine: call it localhost, not " + host})
			return
		}
		handler.ServeHTTP(w, r)
	})
}
