// Package cluster is the one control plane of all contenders: etcd and kube-apiserver, with an audit log that tells
// what each of them has asked for.
//
// It is apart because it knows no contenders, but users: each has a kubeconfig, and its requests are counted by name.
// Its own requests, which create and change objects, and watch them, are logged nowhere.
//
// Neighbours: package scenarios says what is done to objects, and when.
package cluster
