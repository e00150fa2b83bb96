package tunnels

import (
	"context"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Local is the server that a tunnel leads to.
type Local struct {
	// Scheme is "https" or "http", Address its host and port, and Path what its paths begin with.
	Scheme, Address, Path string
	// Bundle is by which clients know the server, or what ends TLS before it, in PEM; nil if that is not known.
	Bundle []byte
}

// URL is that of the server for clients on this machine, without the path.
func (l Local) URL() string { return l.Scheme + "://" + l.Address }

// Tunnel leads from the cluster to a server on this machine, or somewhere else where the cluster cannot reach it by
// itself. Kopf: any server that is an asynchronous generator of client configurations.
type Tunnel interface {
	// Run opens the tunnel, and keeps it open until the context ends, which is when nobody needs it any more. It tells
	// how the API server gets in, and tells it again whenever that changes. When it returns before, be it with an error
	// or without one, it is called again after a pause. A reconcile.TerminalError says that this is of no use: it ends
	// the operator.
	Run(ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig)) error
}

// Func is a function that is a [Tunnel].
type Func func(ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig)) error

// Run calls the function.
func (f Func) Run(ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig)) error {
	return f(ctx, to, told)
}

// Fixed is the way to a server that needs no tunnel: by a URL that does not change. The path of the server comes behind
// it.
func Fixed(url string) Tunnel {
	return Func(func(
		ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig),
	) error {
		told(ByURL(strings.TrimRight(url, "/")+to.Path, to.Bundle))
		<-ctx.Done()
		return nil
	})
}
