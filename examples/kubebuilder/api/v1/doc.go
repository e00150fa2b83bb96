// Package v1 has the Go types of webapp.example.org/v1. They are a separate package, because clients need them, too.
// The reconciler is in internal/controller.
//
// +kubebuilder:object:generate=true
// +groupName=webapp.example.org
package v1
