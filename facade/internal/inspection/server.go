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

// DefaultAddress is where operators with a command line serve, and where their command explain asks.
const DefaultAddress = "localhost:8082"

// Server is an address that is served.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Serve begins to serve at an address, such as localhost:8082. It is an error if that cannot be had, as it is in use.
func Serve(address string, handler http.Handler) (*Server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving at the debug address %s: %w", address, err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		handler = onlyHere(handler)
	}
	s := &Server{listener: listener, server: limited(handler)}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// limited is a server for which nobody can take long to ask, nor ask for much.
func limited(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: 16 << 10, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // they are errors of clients
	}
}

// Address is where it is served.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends the service at once, with all requests.
func (s *Server) Close() { _ = s.server.Close() }

// onlyHere answers those alone who call this machine by a name of its own. A name that somebody else has made point
// here, for a browser that shows a page of theirs, is none.
func onlyHere(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]") // there is no port, though an address of IPv6 has brackets
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			refuse(w, http.StatusForbidden,
				Problem{Error: "this address is for its own machine: call it localhost, not " + host})
			return
		}
		handler.ServeHTTP(w, r)
	})
}
