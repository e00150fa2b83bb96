// Package e2e plays whole operators against a real API server: what a user sees of create, update, delete and resume,
// through restarts, crashes and bad input.
//
// It is apart from the tests of the packages because it needs a control plane, and because it uses only the public
// doors: facade, the API, and the process's signals. KUBEBUILDER_ASSETS names the folder with etcd and kube-apiserver;
// make test sets it.
//
// Neighbours: test/e2e/api has the Go types; test/e2e/operator is the program that is killed.
package e2e
