package credentials

import (
	"k8s.io/client-go/rest"
)

// ServiceAccountOf returns the credentials of a pod with the given configuration, whose namespace is in the given
// file.
func ServiceAccountOf(config func() (*rest.Config, error), namespace string) (*Info, error) {
	return podFiles{config, namespace}.serviceAccount()
}
