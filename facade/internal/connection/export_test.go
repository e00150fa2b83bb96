package connection

import (
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// ServiceAccountOf is ServiceAccount in a pod that has this configuration, and its namespace in this file.
func ServiceAccountOf(config func() (*rest.Config, error), namespace string) (*credentials.Info, error) {
	return pod{config, namespace}.serviceAccount()
}
