// Package quickstart follows the quick start of the README and the pages of docs, block by block, in empty folders.
//
// The Go command gets the working tree as a released version from a module proxy in a folder, so that the commands run
// as written. The cluster is the development cluster, and kubectl is that of KUBEBUILDER_ASSETS. One cluster serves all
// pages; each page has a copy of the folder that the page about the first operator leaves.
//
// A block of commands in a page is a block of sh. Each is run, except those that begin with a line such as "# Needs a
// cluster that runs containers." Package documents finds commands outside of such blocks. A page whose commands need a
// program, an object or a file has an entry in the table of pages_test.go.
package quickstart
