// Package assets finds, or else makes, the programs of a Kubernetes control plane: etcd, kube-apiserver, kubectl.
//
// The order is: the folder that KUBEBUILDER_ASSETS names; a versioned cache folder; setup-envtest's download; a build
// from the Go module proxy, which takes minutes, once. It is apart from controlplane so that a search can be had
// without the servers' code. It never changes the folder of KUBEBUILDER_ASSETS, never leaves a half-written program in
// the cache, and never writes to standard output. Its neighbours are progress and internal/process; controlplane runs
// the programs.
package assets
