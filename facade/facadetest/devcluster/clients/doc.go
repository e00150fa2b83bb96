// Not part of the public API.
//
// Package clients tests the development cluster with real clients. It has no code; its tests need binaries.
//
// One table of kubectl commands is played against the development cluster and against kube-apiserver, with the same
// expectations. The binaries come from the folder in KUBEBUILDER_ASSETS, which "make test-envtest" sets.
package clients
