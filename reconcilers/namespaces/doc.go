// Not part of the public API.
//
// Package namespaces says which namespaces an operator serves: those that its patterns match, from the time when they
// are seen until nothing is left in them.
//
// It is apart because that is a matter of names and of conditions alone, whatever is handled there. It asks the API
// server for namespaces only, and only where patterns need it; it starts and stops nothing.
//
// Neighbours: package controller starts and stops controllers by the set; package reconcilers has the set kept up to
// date, also while the operator is paused; kinds that appear and vanish are package discovery's.
package namespaces
