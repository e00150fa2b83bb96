package connection

import (
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// ServiceAccountOf returns the credentials of a pod with the given configuration, whose namespace is in the given
// file.
func ServiceAccountOf(config func() (*rest.Config, error), namespace string) (*credentials.Info, error) {
	return podFiles{config, namespace}.serviceAccount()
}
