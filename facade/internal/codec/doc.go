// Not part of the public API.
//
// Package codec turns raw objects into the Go types that users' functions get, and changes of these back into changes
// of the raw objects.
//
// It is apart because what is watched, compared and stored is always the raw object: the Go type decides about nothing
// but what a function sees, and fields that it does not have survive every change. It never calls a user's function
// other than the change that it is given, and never keeps or modifies an object that comes in.
//
// Neighbours: package deepcopy copies decoded objects; package facade gives every selection one codec.
package codec
