// Package v1 has the Go types of clusters.example.org/v1. They are apart from the program, as clients need them too;
// they never do anything. Its neighbours are the program in the folder above, which handles the objects, and package
// cloud, which knows nothing of them.
//
// +kubebuilder:object:generate=true
// +groupName=clusters.example.org
package v1
