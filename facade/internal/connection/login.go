package connection

import (
	"os"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// namespaceFile is where a pod finds its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Login finds the cluster as [Load] does, with the credentials for it. It is how an operator logs in that has no
// handlers for that.
func Login(path string) (*credentials.Info, error) {
	config, err := Load(path)
	if err != nil {
		return nil, err
	}
	info := &credentials.Info{Config: config}
	if namespace, _, err := loader(path).Namespace(); err == nil {
		info.DefaultNamespace = namespace
	}
	return info, nil
}

func mountedNamespace() string {
	data, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
