package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

// startedInterval is how often the webhook server is tried before it is told to the cluster.
const startedInterval = 100 * time.Millisecond

// errTunnelEnded is that of a tunnel that has none.
var errTunnelEnded = errors.New("it ended unexpectedly")

// trust takes over a new CA bundle.
func (a *Admission) trust(ctx context.Context, bundle []byte) {
	a.mu.Lock()
	a.bundle = bundle
	a.mu.Unlock()
	if a.options.Dump != "" {
		if err := certificates.Dump(a.options.Dump, bundle); err != nil {
			logf.FromContext(ctx).Error(err, "Cannot dump the CA bundle of webhooks")
		}
	}
	a.tell()
}

// tell says where the API server finds the paths now. A tunnel need not know that the CA bundle has changed.
func (a *Admission) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.writer == nil || !a.reachable:
	case a.options.Tunnel == nil:
		a.writer.Reach(a.options.Reach(a.bundle))
	case a.way != nil:
		way := *a.way
		if bytes.Equal(way.CABundle, a.local.Bundle) {
			way.CABundle = a.bundle
		}
		a.writer.Reach(way)
	}
}

// reach waits until requests are answered, and says so.
func (a *Admission) reach(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.open:
	}
	for !a.isReachable() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startedInterval):
		}
	}
	a.announce(nil)
	a.tell()
	close(a.reached)
	return nil
}

// openTunnel opens the tunnel, if there is one, as soon as the server can be reached. It stays open when the context
// ends, until it is closed: what was sent on its way must arrive.
func (a *Admission) openTunnel(running context.Context, stop context.CancelCauseFunc) (closeTunnel func()) {
	if a.options.Tunnel == nil || a.writer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(running))
	var tunnel sync.WaitGroup
	tunnel.Go(func() {
		select {
		case <-running.Done():
			return
		case <-a.reached:
		}
		if err := a.keepTunnel(ctx); err != nil {
			stop(fmt.Errorf("leading the API server to the webhook server: %w", err))
		}
	})
	return func() { cancel(); tunnel.Wait() }
}

// keepTunnel opens the tunnel again whenever it fails, until the context ends. An error says that it is of no use.
func (a *Admission) keepTunnel(ctx context.Context) error {
	pause := backoff()
	for ctx.Err() == nil {
		var opened atomic.Bool
		err := panics.Contain(func() error {
			return a.options.Tunnel.Run(ctx, a.local, func(way admissionregistrationv1.WebhookClientConfig) {
				opened.Store(true)
				a.mu.Lock()
				a.way = &way
				a.mu.Unlock()
				a.tell()
			})
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, reconcile.TerminalError(nil)):
			return err
		case err == nil:
			err = errTunnelEnded
		}
		if opened.Load() {
			pause = backoff()
		}
		after := pause.Step()
		logf.FromContext(ctx).Error(err, "Tunnel of webhooks failed; opening it again",
			append(panics.Stack(err), "after", after.String())...)
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
	return nil
}

// isReachable tells whether the webhook server answers, with a certificate that clients can trust.
func (a *Admission) isReachable() bool {
	if a.options.Started != nil && a.options.Started(nil) != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reachable = a.bundle != nil || a.options.Certificates == nil
	a.local = a.options.Local
	a.local.Path, a.local.Bundle = a.options.Path, a.bundle
	return a.reachable
}
