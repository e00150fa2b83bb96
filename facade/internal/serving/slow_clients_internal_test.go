package serving

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener in memory, for virtual time.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.closed); return nil }

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) connect() net.Conn {
	client, server := net.Pipe()
	p.connections <- server
	return client
}

// TestSlowClients shows that slow clients are disconnected and do not block others.
func TestSlowClients(t *testing.T) {
	const head = "GET / HTTP/1.1\r\nHost: h\r\n"
	tests := map[string]struct {
		reason      string
		sends       string // at once
		sendsSlowly bool   // and then a byte a second
		read        bool
		within      time.Duration
	}{
		"Silent":  {"a silent client is disconnected", "", false, true, 10 * time.Second},
		"Headers": {"a client with endless headers is disconnected", head, true, true, 10 * time.Second},
		"Body": {"a client with an endless body is disconnected", head + "Content-Length: 1000\r\n\r\n", true, true,
			10 * time.Second},
		"Idle": {"an idle client is disconnected after a minute", head + "\r\n", false, true,
			time.Minute + time.Second},
		"Reader": {"a client that does not read the answer is disconnected", head + "\r\n", false, false, time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pipes{connections: make(chan net.Conn), closed: make(chan struct{})}
				e := startLivenessServer(p, "/", func(context.Context) (map[string]any, error) { return nil, nil })
				defer e.Close()
				slow, began, ended := p.connect(), time.Now(), make(chan time.Time, 1)
				defer func() { _ = slow.Close(); time.Sleep(2 * time.Second) }()
				go func() {
					_, err := io.WriteString(slow, tc.sends)
					for ; err == nil && tc.sendsSlowly; time.Sleep(time.Second) {
						_, err = io.WriteString(slow, "x")
					}
				}()
				if tc.read {
					go func() { _, _ = io.Copy(io.Discard, slow); ended <- time.Now() }()
				}
				if answer := ask(t, p.connect()); answer != "{}" {
					t.Errorf("another client must get its answer, got %q", answer)
				}
				if tc.read {
					if took := (<-ended).Sub(began); took > tc.within {
						t.Errorf("%s: the connection was open for %s", tc.reason, took)
					}
					return
				}
				time.Sleep(tc.within)
				synctest.Wait()
				if _, err := slow.Write([]byte("x")); err == nil {
					t.Errorf("%s: the connection is still open after %s", tc.reason, tc.within)
				}
			})
		})
	}
}

// ask sends one request over the connection and closes it.
func ask(t *testing.T, c net.Conn) string {
	t.Helper()
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
