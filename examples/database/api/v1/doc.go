// Package v1 has the Go types of sql.example.org/v1. They are apart from the program, as clients need them too; they
// never do anything. Its neighbour is the program in the folder above, which handles the objects.
//
// +kubebuilder:object:generate=true
// +groupName=sql.example.org
package v1
