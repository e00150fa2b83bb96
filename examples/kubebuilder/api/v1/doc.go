// Package v1 has the Go types of webapp.example.org/v1. They are apart from the controllers, as clients need them too;
// they never do anything. Its neighbour is internal/controller, which reconciles the objects.
//
// +kubebuilder:object:generate=true
// +groupName=webapp.example.org
package v1
