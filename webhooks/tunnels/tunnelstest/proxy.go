package tunnelstest

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// Proxy is a tunnel from one port of this machine to another. Each value of moves is closed when the proxy has moved.
type Proxy struct{ moves chan chan struct{} }

var _ tunnels.Tunnel = (*Proxy)(nil)

// New returns a proxy.
func New() *Proxy { return &Proxy{moves: make(chan chan struct{})} }

// Move moves the open tunnel to another port, and returns when the new address is reported. It blocks until the tunnel
// is open.
func (p *Proxy) Move() {
	moved := make(chan struct{})
	p.moves <- moved
	<-moved
}

// Run implements [tunnels.Tunnel].
func (p *Proxy) Run(
	ctx context.Context, to tunnels.Local, told func(admissionregistrationv1.WebhookClientConfig),
) error {
	var moved chan struct{}
	for ctx.Err() == nil {
		stop, address, err := startForwarding(ctx, to.Address)
		if err != nil {
			return err
		}
		told(tunnels.ByURL(to.Scheme+"://"+address+to.Path, to.Bundle))
		// Move returns only after the new address is reported, so that tests can rely on it.
		if moved != nil {
			close(moved)
		}
		select {
		case <-ctx.Done():
		case moved = <-p.moves:
		}
		// The former port refuses connections before the next one is opened.
		stop()
	}
	return nil
}

// startForwarding listens on a free port and forwards connections until stop is called, which waits for all of them.
func startForwarding(ctx context.Context, to string) (stop func(), address string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("opening the tunnel to %s: %w", to, err)
	}
	// The context ends the running connections. Closing the listener only prevents new ones.
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // the listener is closed
			}
			all.Go(func() { forwardConnection(ctx, near, to) })
		}
	})
	return func() { cancel(); _ = listener.Close(); all.Wait() }, listener.Addr().String(), nil
}

// forwardConnection copies bytes in both directions until one side closes the connection, or the tunnel closes.
func forwardConnection(ctx context.Context, near net.Conn, to string) {
	defer near.Close()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	ctx, cancel := context.WithCancel(ctx)
	// Each direction cancels the context when its source ends or its destination fails.
	copying := func(to io.Writer, from io.Reader) {
		defer cancel()
		_, _ = io.Copy(to, from)
	}
	go copying(far, near)
	go copying(near, far)
	// Closing both connections ends the copying in the other direction.
	<-ctx.Done()
}
