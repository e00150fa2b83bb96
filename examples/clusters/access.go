package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// writeKubeconfig creates or updates the secret. It is called for creations and changes, and after a restart of the
// operator, as another client may have removed the secret meanwhile.
func writeKubeconfig(ctx context.Context, c *Change) error {
	server, err := endpoint(c)
	if err != nil {
		return err
	}
	content, err := kubeconfig(c.Object.Name, server)
	if err != nil {
		return kopf.Permanent(err)
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = namespaceOf(c.Object), "kubeconfig"
	done, err := controllerutil.CreateOrPatch(ctx, c.Client, secret, func() error {
		secret.Data = map[string][]byte{"kubeconfig": content}
		return nil
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("The kubeconfig is in its secret", "endpoint", server, "result", done)
	return nil
}

func kubeconfig(name, server string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// reconnect is called once for each cluster that existed when the operator started. The cloud of this example is in the
// operator's memory, so reconnect also restores the control planes that were lost with it.
func (o *operator) reconnect(ctx context.Context, c *Change) error {
	server, err := endpoint(c)
	if err != nil {
		return err
	}
	if _, err := o.planes.EnsureControlPlane(ctx, c.Object.Name, c.Object.Status.Version); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Reconnected", "endpoint", server)
	return nil
}
