// Not part of the public API.
//
// Package informers makes the informer of one kind in one namespace, or in all: client-go's, on objects that are kept
// as bytes.
//
// It is apart because it is about how objects come in: a list, be it a stream of events or pages, and the watch after
// it, of which nothing is decoded but metadata. It never decides what an event means.
//
// Neighbours: package compact has the objects; package source turns events into requests; package controller runs the
// informer.
package informers
