// Not part of the public API.
//
// Package deepcopy copies Go values of any type, so that a user's function can modify what it gets without modifying
// what others have.
//
// It is apart, and code of our own, for what the libraries for that do otherwise: a value with state behind unexported
// fields, such as a client or a lock, is shared and not cloned by way of unsafe; Kubernetes objects and quantities copy
// themselves; cycles end. It never calls a method of a value but DeepCopy and DeepCopyObject.
package deepcopy
