package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/client-go/rest"
)

// podFiles is the source of the credentials that Kubernetes mounts into a pod. Tests replace it by other files.
type podFiles struct {
	loadConfig    func() (*rest.Config, error)
	namespaceFile string // contains the namespace
}

var mountedFiles = podFiles{rest.InClusterConfig, "/var/run/secrets/kubernetes.io/serviceaccount/namespace"}

// PodNamespace returns the namespace of the current pod; empty outside of a cluster.
func PodNamespace() string { return mountedFiles.readNamespace() }

// FromServiceAccount returns the credentials of the current pod, or nil without a service account. Client-go reads the
// token file again periodically, because the kubelet rotates it.
func FromServiceAccount() (*Info, error) { return mountedFiles.serviceAccount() }

// serviceAccount returns nil without an error outside of a cluster, and in a pod without a mounted token.
func (p podFiles) serviceAccount() (*Info, error) {
	config, err := p.loadConfig()
	switch {
	case errors.Is(err, rest.ErrNotInCluster), errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // a pod can do without, which is no error
	case err != nil:
		return nil, fmt.Errorf("reading the service account: %w", err)
	}
	info := infoOf(config)
	info.Priority, info.DefaultNamespace = serviceAccountPriority, p.readNamespace()
	return info, nil
}

// readNamespace returns the namespace of the pod; empty if the file cannot be read.
func (p podFiles) readNamespace() string {
	data, err := os.ReadFile(p.namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
