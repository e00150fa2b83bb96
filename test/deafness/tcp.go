package deafness

import (
	"net"
	"sync"
	"sync/atomic"
)

// TCP is a proxy of connections. When it goes deaf, it takes what comes on those that are open, and delivers none of
// it, as a gateway does that has forgotten a connection. New connections work.
type TCP struct {
	listener    net.Listener
	backend     string
	deafenCount atomic.Int64

	mu        sync.Mutex
	openConns []net.Conn
}

// NewTCP begins to serve at an address of its own.
func NewTCP(backend string) (*TCP, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with Close
	if err != nil {
		return nil, err
	}
	p := &TCP{listener: listener, backend: backend}
	go p.serve()
	return p, nil
}

// Addr is where it is.
func (p *TCP) Addr() string { return p.listener.Addr().String() }

// Deafen makes it deaf for all that is open.
func (p *TCP) Deafen() { p.deafenCount.Add(1) }

// Close ends it with all connections.
func (p *TCP) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.openConns {
		_ = c.Close()
	}
}

func (p *TCP) serve() {
	for {
		front, err := p.listener.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("tcp", p.backend) //nolint:noctx // it ends with Close
		if err != nil {
			_ = front.Close()
			continue
		}
		p.mu.Lock()
		p.openConns = append(p.openConns, front, back)
		p.mu.Unlock()
		born := p.deafenCount.Load()
		go p.pass(born, front, back)
		go p.pass(born, back, front)
	}
}

// pass copies data from one side to the other. A deaf proxy does not even pass on the end of a connection.
func (p *TCP) pass(born int64, from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if p.deafenCount.Load() == born {
			if n > 0 {
				_, _ = to.Write(buffer[:n])
			}
			if err != nil {
				_ = to.Close()
			}
		}
		if err != nil {
			_ = from.Close()
			return
		}
	}
}
