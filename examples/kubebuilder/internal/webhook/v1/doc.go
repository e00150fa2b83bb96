// Package v1 has the project's own webhooks, as kubebuilder generates them. The admission handlers of the facade are in
// package controller. One manager serves both, with separate paths and configurations.
package v1
