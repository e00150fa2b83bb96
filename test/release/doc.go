// Package release tests the files that turn the repository, or an operator, into something to ship: the Dockerfile of
// the first example, builds for several platforms, the workflows and templates of the repository, and the list of
// modules with their licences.
//
// It is a module of its own, because only these tests need its parsers. It does not start containers or connect to a
// registry: the steps of a Dockerfile are run by the shell, in an empty folder.
package release
