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

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// startedInterval is the time between two checks of the webhook server before its address is published.
const startedInterval = 100 * time.Millisecond

// errTunnelEnded is the error of a tunnel that returns without an error while it is needed.
var errTunnelEnded = errors.New("it ended unexpectedly")

// updateBundle sets a new CA bundle, and publishes it.
func (a *WebhookServer) updateBundle(ctx context.Context, bundle []byte) {
	a.mu.Lock()
	a.bundle = bundle
	a.mu.Unlock()
	// The operator itself does not need the file, so an error is only logged.
	if a.options.CADumpFile != "" {
		if err := certificates.DumpBundle(a.options.CADumpFile, bundle); err != nil {
			logf.FromContext(ctx).Error(err, "Cannot dump the CA bundle of webhooks")
		}
	}
	a.publishAddress()
}

// publishAddress passes the current address of the server to the writer, unless it is not reachable yet. A tunnel that
// was opened with a former CA bundle gets the current one.
func (a *WebhookServer) publishAddress() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.writer == nil || !a.wasReachable:
	case a.options.Tunnel == nil:
		a.writer.SetClientConfig(a.options.ClientConfig(a.bundle))
	case a.tunnelConfig != nil:
		way := *a.tunnelConfig
		// A tunnel that terminates TLS itself returns its own bundle, which stays.
		if bytes.Equal(way.CABundle, a.localServer.Bundle) {
			way.CABundle = a.bundle
		}
		a.writer.SetClientConfig(way)
	}
}

// publishWhenReachable waits until reviews are answered and the webhook server is reachable, and then publishes the
// address. Entries that lead nowhere would block requests.
func (a *WebhookServer) publishWhenReachable(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.reviewsReady:
	}
	// The server is polled, because a StartedChecker cannot notify.
	for !a.isReachable() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startedInterval):
		}
	}
	a.announceHooks(nil)
	a.publishAddress()
	close(a.serverReachable)
	return nil
}

// openTunnel opens the tunnel, if there is one, as soon as the webhook server is reachable. When the context ends, the
// tunnel stays open until the returned function is called: requests still arrive until the entries are removed.
func (a *WebhookServer) openTunnel(running context.Context, stop context.CancelCauseFunc) (closeTunnel func()) {
	if a.options.Tunnel == nil || a.writer == nil {
		return func() {}
	}
	// The tunnel outlives the context of the other parts, see above.
	ctx, cancel := context.WithCancel(context.WithoutCancel(running))
	var tunnel sync.WaitGroup
	tunnel.Go(func() {
		select {
		case <-running.Done():
			return
		case <-a.serverReachable:
		}
		if err := a.keepTunnel(ctx); err != nil {
			stop(fmt.Errorf("leading the API server to the webhook server: %w", err))
		}
	})
	return func() { cancel(); tunnel.Wait() }
}

// keepTunnel keeps the tunnel open until the context ends. It opens the tunnel again after errors. It returns an error
// if retries cannot help.
func (a *WebhookServer) keepTunnel(ctx context.Context) error {
	pause := configurations.RetryBackoff()
	for ctx.Err() == nil {
		var opened atomic.Bool
		// Tunnels are code of users, which can panic.
		err := panics.Contain(func() error {
			// The tunnel may report addresses from any goroutine.
			return a.options.Tunnel.Run(ctx, a.localServer, func(way admissionregistrationv1.WebhookClientConfig) {
				opened.Store(true)
				a.mu.Lock()
				a.tunnelConfig = &way
				a.mu.Unlock()
				a.publishAddress()
			})
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, reconcile.TerminalError(nil)):
			return err
		case err == nil:
			// A tunnel must run until its context ends.
			err = errTunnelEnded
		}
		// A tunnel that was open for some time starts again with a short delay.
		if opened.Load() {
			pause = configurations.RetryBackoff()
		}
		// Before the next attempt, the last address stays in the entries.
		after := pause.Step()
		logf.FromContext(ctx).Error(err, "Tunnel of webhooks failed; opening it again",
			append(panics.StackFields(err), "after", after.String())...)
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
	return nil
}

// isReachable reports whether the webhook server responds, with a certificate that clients can verify. It also prepares
// the argument of the tunnel.
func (a *WebhookServer) isReachable() bool {
	if a.options.StartedChecker != nil && a.options.StartedChecker(nil) != nil {
		return false
	}
	// Without a bundle, the API server could not verify the certificate.
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wasReachable = a.bundle != nil || a.options.Certificates == nil
	a.localServer = a.options.LocalServer
	a.localServer.Path, a.localServer.Bundle = a.options.Path, a.bundle
	return a.wasReachable
}
