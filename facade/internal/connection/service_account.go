package connection

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// pod is what Kubernetes tells a process in a pod: in files that only tests have elsewhere.
type pod struct {
	config func() (*rest.Config, error)
	file   string // has the namespace
}

var around = pod{rest.InClusterConfig, "/var/run/secrets/kubernetes.io/serviceaccount/namespace"}

// PodNamespace is that of the pod around the process; empty outside of a cluster.
func PodNamespace() string { return around.namespace() }

// ServiceAccount gives the credentials of the pod around the process; nil if there are none. Client-go reads the token
// again from time to time.
func ServiceAccount() (*credentials.Info, error) { return around.serviceAccount() }

func (p pod) serviceAccount() (*credentials.Info, error) {
	config, err := p.config()
	switch {
	case errors.Is(err, rest.ErrNotInCluster), errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // a pod can do without, which is no error
	case err != nil:
		return nil, fmt.Errorf("reading the service account: %w", err)
	}
	info := of(config)
	info.Priority, info.DefaultNamespace = serviceAccountPriority, p.namespace()
	return info, nil
}

// namespace is that of the pod; empty if it is not told.
func (p pod) namespace() string {
	data, err := os.ReadFile(p.file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
