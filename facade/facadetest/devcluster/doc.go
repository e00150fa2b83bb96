// Package devcluster serves a development cluster in one process: the API server in memory of package memapi, behind
// HTTPS on a loopback address, for kubectl, helm, client-go and clients in other languages.
//
// [Start] begins to serve and writes a kubeconfig file. The command cmd/devcluster does the same for a program that it
// starts. The server stores objects, validates and prints them, runs garbage collection, namespaces and webhooks; no
// kubelet or scheduler runs behind it, and RBAC is off.
//
// The package is a module of its own, so that other programs do not link the libraries for OpenAPI, CEL and printing.
// Features of the API server that do not need such a library belong in memapi. Do not link this package into an
// operator.
package devcluster
