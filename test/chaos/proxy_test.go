package chaos_test

import (
	"net"
	"sync"
)

// proxy is the connection of one operator to the API server. It can hold all data back, like a network that loses
// packets: the data arrives after heal. Or it can close all connections, like a network that rejects them.
type proxy struct {
	listener net.Listener
	backend  string

	mu        sync.Mutex
	healed    chan struct{} // is closed unless something is held back
	isDown    bool
	openConns map[net.Conn]struct{}
}

func newProxy(backend string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with close
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, backend: backend, healed: make(chan struct{}), openConns: map[net.Conn]struct{}{}}
	close(p.healed)
	go p.serve()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// hold delays all data on present and new connections until heal.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healed = make(chan struct{})
}

// cut breaks all connections, and takes none, until it is healed.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isDown = true
	p.closeAll()
}

func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isDown = false
	select {
	case <-p.healed:
	default:
		close(p.healed)
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.heal()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

func (p *proxy) closeAll() {
	for c := range p.openConns {
		_ = c.Close()
		delete(p.openConns, c)
	}
}

func (p *proxy) serve() {
	for {
		front, err := p.listener.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("tcp", p.backend) //nolint:noctx // it ends with close
		if err != nil || !p.take(front, back) {
			_ = front.Close()
			if err == nil {
				_ = back.Close()
			}
			continue
		}
		go p.pass(front, back)
		go p.pass(back, front)
	}
}

func (p *proxy) take(all ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDown {
		return false
	}
	for _, c := range all {
		p.openConns[c] = struct{}{}
	}
	return true
}

// pass copies data in one direction. Received data is delivered even if the sender has closed the connection.
func (p *proxy) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		healed := p.healed
		p.mu.Unlock()
		<-healed
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			p.mu.Lock()
			delete(p.openConns, from)
			p.mu.Unlock()
			_ = from.Close()
			_ = to.Close()
			return
		}
	}
}
