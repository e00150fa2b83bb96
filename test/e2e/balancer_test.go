package e2e_test

import (
	"io"
	"net"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// balancer replaces a Service: it forwards each connection to the first backend that accepts it.
type balancer struct {
	listener net.Listener

	mu        sync.Mutex
	backends  []string
	backendOf map[net.Conn]string // the backend of each connection
}

// newBalancer starts a balancer for the spec.
func newBalancer() *balancer {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the spec
	Expect(err).NotTo(HaveOccurred())
	b := &balancer{listener: listener, backendOf: map[net.Conn]string{}}
	DeferCleanup(listener.Close)
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go b.forward(near)
		}
	}()
	return b
}

func (b *balancer) address() string { return b.listener.Addr().String() }

// add makes a backend available for connections.
func (b *balancer) add(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = append(b.backends, backend)
}

// remove stops forwarding to a backend. Its open connections stay, unless cut is set.
func (b *balancer) remove(backend string, cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(b.backends, func(one string) bool { return one == backend })
	for connection, to := range b.backendOf {
		if cut && to == backend {
			_ = connection.Close()
		}
	}
}

func (b *balancer) forward(near net.Conn) {
	defer near.Close()
	b.mu.Lock()
	var far net.Conn
	for _, backend := range b.backends {
		made, err := net.Dial("tcp", backend) //nolint:noctx // it is on this machine
		if err == nil {
			far = made
			b.backendOf[near], b.backendOf[far] = backend, backend
			break
		}
	}
	b.mu.Unlock()
	if far == nil {
		return
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	copying := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go copying(far, near)
	go copying(near, far)
	<-ended
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.backendOf, near)
	delete(b.backendOf, far)
}
