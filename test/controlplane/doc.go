// Package controlplane runs a temporary Kubernetes control plane, etcd and kube-apiserver.
//
// It is a module of its own, on the standard library alone, so that getting and starting a cluster costs a second of
// compilation and adds nothing to the framework's dependencies. Its state lives in a temporary folder that goes with
// it, also after a crash or a kill. It never touches another cluster, the user's kubeconfig, or a port beyond
// 127.0.0.1. Its neighbours: assets finds or builds the programs, cmd/controlplane is the command line.
package controlplane
