// Not part of the public API.
//
// Package freezing does what people ask of running operators by hand: to pause for some time, and to go on. It writes
// a record into peering objects, and removes it, as an operator of a high priority would.
//
// It stands apart from package peering as it looks for kinds and namespaces once, and says clearly why nothing can come
// of it; operators keep looking, and wait. It never makes a peering object, and keeps nothing alive: a record that
// nobody removes is good until its lifetime is over.
//
// Neighbours: package commandline has the flags of it; packages discovery and namespaces find the objects.
package freezing
