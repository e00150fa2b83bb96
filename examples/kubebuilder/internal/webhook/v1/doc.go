// Package v1 has the project's own webhooks, as kubebuilder lays them out: they are apart from the handlers of
// admission, which are in package controller, because the manager has both, each with paths and configurations of its
// own.
package v1
