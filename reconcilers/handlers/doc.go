// Not part of the public API.
//
// Package handlers describes the user's functions: what they are for, and which criteria an object must meet.
//
// It is apart so that the engine, its logs and its tests see one plain struct whatever verb, type or option it came
// from. It never calls a function, never keeps state, and knows neither generics nor Kubernetes clients.
//
// Neighbours: reconcilers/cause below it says what happened; reconcilers/execution above it makes the attempts;
// facade fills the structs.
package handlers
