// Package e2e runs whole operators against a real API server: create, update, delete and resume, through restarts,
// crashes and bad input.
//
// It is separate from the package tests because it needs a control plane and uses only public interfaces: the facade,
// the API, and process signals. KUBEBUILDER_ASSETS names the folder with etcd and kube-apiserver; make test sets it.
//
// Specs about parts of the objects (shardSelector) use a second API server, with a feature gate; the first of them
// starts it.
//
// With the variable EXAMPLES, which make explore sets, it also plays every example under its generated permissions, and
// as two processes that elect one of them. With AUTOSCALING, it plays a HorizontalPodAutoscaler.
//
// Neighbours: test/e2e/api has the Go types; test/e2e/operator is the program that is killed.
package e2e
