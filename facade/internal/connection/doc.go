// Not part of the public API.
//
// Package connection is the way of a program to its cluster: the configuration that says where it is, and how a
// connection is made.
//
// It is apart because under a manager that the project makes, all of this is the project's. It never sends a request.
// Neighbours: package commandline has a manager made with it; how long requests take on a connection is for package
// reconcilers/internal/transport.
package connection
