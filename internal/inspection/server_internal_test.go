package inspection

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener with a single connection, on virtual time.
type pipes struct {
	connection chan net.Conn
	closed     chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connection:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowRequests shows that a client that sends its request slowly is disconnected. Otherwise, the number of open
// connections would not be limited.
func TestSlowRequests(t *testing.T) {
	cases := map[string]struct {
		reason, begin string
		want          time.Duration
	}{
		"half a header": {"an incomplete header ends the connection after ten seconds",
			"GET /explain HTTP/1.1\r\nHost: ", 10 * time.Second},
		"nothing": {"a silent client is disconnected after ten seconds", "", 10 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				own, theirs := net.Pipe()
				listener := pipes{make(chan net.Conn, 1), make(chan struct{})}
				listener.connection <- theirs
				server := newLimitedServer(http.NotFoundHandler())
				go func() { _ = server.Serve(listener) }()
				begin := time.Now()
				time.AfterFunc(time.Hour, func() { _ = theirs.Close() }) // the test always ends
				if _, err := io.WriteString(own, c.begin); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, own)
				if got := time.Since(begin).Round(time.Second); got != c.want {
					t.Errorf("%s: want the end after %s, got %s", c.reason, c.want, got)
				}
				_ = server.Close()
			})
		})
	}
}

// TestLongProfiles shows that a profile can take longer than a request may take to arrive.
func TestLongProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, theirs := net.Pipe()
		listener := pipes{make(chan net.Conn, 1), make(chan struct{})}
		listener.connection <- theirs
		server := newLimitedServer(NewHandler(nil, ExtraHandlers{Profiling: true}))
		go func() { _ = server.Serve(listener) }()
		defer func() { _ = server.Close() }()
		const request = "GET /debug/pprof/goroutine?seconds=60 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
		begin := time.Now()
		if _, err := io.WriteString(own, request); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(own)
		if took := time.Since(begin).Round(time.Second); err != nil || took != time.Minute {
			t.Errorf("it took %s: %v", took, err)
		}
		if !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK\r\n") {
			t.Errorf("want a profile, got %q", answer)
		}
	})
}
