// Package v1 has the Go types of store.example.org/v1. It is separate from the program, because clients import it too.
// The program in the folder above handles the objects.
//
// +kubebuilder:object:generate=true
// +groupName=store.example.org
package v1
