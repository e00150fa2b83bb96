// Package controller has the project's own reconciler, as kubebuilder generates it, and the handlers of the facade.
// They do not call each other: both work on the same objects, each on its own part of the status. The types are in
// api/v1; cmd adds both to one manager.
package controller
