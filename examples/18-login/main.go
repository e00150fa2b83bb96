// Command 18-login is an operator that gets its credentials from its own function.
package main

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func main() {
	op := kopf.New("login.kopf.dev")
	op.OnLogin("login_fn", login, kopf.Retries(3))

	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.OnCreate("create_fn", created)

	kopf.Main(op)
}

// login returns the credentials of the service account if there is one, otherwise those of the kubeconfig. They expire
// after an hour, so that it is called again.
func login(ctx context.Context, a *kopf.Activity) (*kopf.ConnectionInfo, error) {
	info, err := kopf.LoginWithServiceAccount(ctx, a)
	if info == nil && err == nil {
		info, err = kopf.LoginWithKubeconfig(ctx, a)
	}
	if info == nil || err != nil {
		return nil, err
	}
	log.FromContext(ctx).Info("Found credentials", "server", info.Server)
	info.Expiration = time.Now().Add(time.Hour)
	return info, nil
}

// created is called with the credentials that are valid at that time.
func created(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	log.FromContext(ctx).Info("Created", "object", c.Object.GetName())
	return nil
}
