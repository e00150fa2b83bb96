// Package v1 has the Go types of databases.example.org/v1. They are a separate package, because clients need them, too.
// The handlers are in the program in the folder above.
//
// +kubebuilder:object:generate=true
// +groupName=databases.example.org
package v1
