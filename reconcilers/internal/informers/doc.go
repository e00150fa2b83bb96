// Not part of the public API.
//
// Package informers creates client-go informers whose objects stay compressed bytes. Lists and watches decode only the
// parts that the engine needs to find and order objects. [New] creates the informer of one kind in one namespace, or in
// the whole cluster. [ObjectReader] reads the uid of a single object.
//
// The package only deals with how objects arrive: as a streamed list, as pages of a list, and as a watch after it.
// Package compact implements the objects, package source turns events into requests, and package controller runs the
// informer.
package informers
