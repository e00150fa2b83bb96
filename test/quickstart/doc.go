// Package quickstart follows the quick start of the README, block by block, in an empty folder.
//
// The Go command gets the working tree as a released version from a module proxy in a folder, so that the commands run
// as written. The cluster is the development cluster, and kubectl is that of KUBEBUILDER_ASSETS.
package quickstart
