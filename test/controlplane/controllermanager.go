package controlplane

import (
	"context"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

// startControllerManager runs kube-controller-manager and waits for the first thing that it makes, a service account:
// it opens no port that could be asked.
func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	s, err := c.launch(assets.ControllerManager, []string{
		"--kubeconfig=" + c.Kubeconfig(),
		"--secure-port=0",
		"--leader-elect=false", // there is no other
		"--service-account-private-key-file=" + c.file("serviceaccount.key"),
		"--root-ca-file=" + c.file("ca.crt"),
	})
	if err != nil {
		return fmt.Errorf("%w; ask for it with assets.Options.Extra", err)
	}
	return c.await(ctx, s, func(ctx context.Context) error {
		return get(ctx, client, c.url+"/api/v1/namespaces/default/serviceaccounts/default")
	})
}
