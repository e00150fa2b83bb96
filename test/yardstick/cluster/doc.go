// Package cluster runs the control plane that all contenders share: etcd and kube-apiserver, with an audit log of their
// requests.
//
// It is separate because it does not depend on contenders, only on users: each has a kubeconfig, and its requests are
// counted by name. The package's own requests, which create, change and watch objects, are not logged.
//
// Neighbours: package scenarios decides when objects are created and changed.
package cluster
