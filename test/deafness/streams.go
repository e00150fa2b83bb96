package deafness

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// Streams is a proxy of HTTP requests: it goes on answering the pings of HTTP/2 when it is deaf, as it speaks HTTP
// itself, but delivers nothing on the streams that are open.
type Streams struct {
	// Backend is where the requests go.
	Backend http.RoundTripper
	// BlocksNewStreams has it deaf for new streams on the connections that are open, too.
	BlocksNewStreams bool

	deafenCount atomic.Int64
}

// deafenCountKey is what the context of a connection has: how many deaths there were before.
type deafenCountKey struct{}

// Deafen makes it deaf for all that is open.
func (p *Streams) Deafen() { p.deafenCount.Add(1) }

// Connect is for http.Server.ConnContext.
func (p *Streams) Connect(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, deafenCountKey{}, p.deafenCount.Load())
}

// ServeHTTP passes a request on, and its answer back, bit by bit.
func (p *Streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	since := p.deafenCount.Load()
	if p.BlocksNewStreams {
		since, _ = r.Context().Value(deafenCountKey{}).(int64)
	}
	if p.deaf(r, since) {
		return
	}
	request := r.Clone(r.Context())
	request.RequestURI, request.URL.Scheme, request.URL.Host = "", "http", "backend"
	response, err := p.Backend.RoundTrip(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = response.Body.Close() }()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	p.copy(w, r, response.Body, since)
}

func (p *Streams) copy(w http.ResponseWriter, r *http.Request, from io.Reader, since int64) {
	control, buffer := http.NewResponseController(w), make([]byte, 32<<10)
	_ = control.Flush()
	for {
		n, err := from.Read(buffer)
		if p.deaf(r, since) {
			return
		}
		if n > 0 {
			_, _ = w.Write(buffer[:n])
			_ = control.Flush()
		}
		if err != nil {
			return
		}
	}
}

// deaf holds a request until its client gives up, if it came too early.
func (p *Streams) deaf(r *http.Request, since int64) bool {
	if p.deafenCount.Load() == since {
		return false
	}
	<-r.Context().Done()
	return true
}
