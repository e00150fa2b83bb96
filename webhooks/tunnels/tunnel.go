package tunnels

import (
	"context"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Local is the server to which a tunnel leads.
type Local struct {
	// Scheme is "https" or "http". Address is its host and port. Path is the prefix of its paths.
	Scheme, Address, Path string
	// Bundle is the CA bundle, in PEM, that verifies the server or a proxy in front of it; nil if it is not known.
	Bundle []byte
}

// URL returns the URL of the server for clients on this machine, without the path.
func (l Local) URL() string { return l.Scheme + "://" + l.Address }

// Tunnel connects the cluster to a server on this machine, or elsewhere if the cluster cannot reach it directly. Kopf:
// a server that is an asynchronous generator of client configurations.
type Tunnel interface {
	// Run opens the tunnel and keeps it open until the context ends. It reports the address for the API server,
	// initially and whenever it changes. If it returns earlier, with or without an error, it is called again after a
	// delay. A reconcile.TerminalError means that retries cannot help, and ends the operator. The context ends when no
	// requests are expected any more: the entries in the cluster have already been removed.
	Run(ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig)) error
}

// Func is a function that implements [Tunnel].
type Func func(ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig)) error

// Run calls the function.
func (f Func) Run(ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig)) error {
	return f(ctx, to, told)
}

// Fixed returns a tunnel that only reports a constant URL, with the path of the server appended. It opens nothing.
func Fixed(url string) Tunnel {
	return Func(func(
		ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig),
	) error {
		// The address does not change, so it is reported once.
		told(ByURL(strings.TrimRight(url, "/")+to.Path, to.Bundle))
		<-ctx.Done()
		return nil
	})
}
