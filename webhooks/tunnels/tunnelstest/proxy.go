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

// Proxy is a tunnel from a port of this machine to another one.
type Proxy struct{ moves chan chan struct{} }

var _ tunnels.Tunnel = (*Proxy)(nil)

// New makes a proxy.
func New() *Proxy { return &Proxy{moves: make(chan chan struct{})} }

// Move closes the port, opens another one, and returns when that is told. The tunnel must be open.
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
		stop, address, err := open(ctx, to.Address)
		if err != nil {
			return err
		}
		told(tunnels.ByURL(to.Scheme+"://"+address+to.Path, to.Bundle))
		if moved != nil {
			close(moved)
		}
		select {
		case <-ctx.Done():
		case moved = <-p.moves:
		}
		stop()
	}
	return nil
}

// open listens, and carries connections until it is stopped.
func open(ctx context.Context, to string) (stop func(), address string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("opening the tunnel to %s: %w", to, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			all.Go(func() { carry(ctx, near, to) })
		}
	})
	return func() { cancel(); _ = listener.Close(); all.Wait() }, listener.Addr().String(), nil
}

// carry copies both ways until one of the sides, or the tunnel, is closed.
func carry(ctx context.Context, near net.Conn, to string) {
	defer near.Close()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	ctx, cancel := context.WithCancel(ctx)
	copying := func(to io.Writer, from io.Reader) {
		defer cancel()
		_, _ = io.Copy(to, from)
	}
	go copying(far, near)
	go copying(near, far)
	<-ctx.Done()
}
