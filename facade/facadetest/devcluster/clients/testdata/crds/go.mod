// The modules whose CRDs the tests of manifests install. Nothing of them is compiled.
module example.org/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
