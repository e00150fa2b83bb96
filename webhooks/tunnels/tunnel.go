package tunnels

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Local is the server that a tunnel leads to.
type Local struct {
	// Address is its host and port, and Path what its paths begin with.
	Address, Path string
	// Bundle is by which clients know it, in PEM; it is nil for plain HTTP.
	Bundle []byte
}

// Tunnel leads from the cluster to a server on this machine, or somewhere else where the cluster cannot reach it by
// itself. Kopf: any server that is an asynchronous generator of client configurations.
type Tunnel interface {
	// Run opens the tunnel, and keeps it open until the context ends. It tells how the API server gets in, and tells it
	// again whenever that changes. An error says that it can never be opened, or has ended for good.
	Run(ctx context.Context, to Local, told func(admissionregistrationv1.WebhookClientConfig)) error
}
