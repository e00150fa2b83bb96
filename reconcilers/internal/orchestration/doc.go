// Not part of the public API.
//
// Package orchestration starts and stops controllers as what selectors mean on the cluster changes: a CRD may be
// installed after the operator, be changed, or go and come back.
//
// It is apart because it is about resources as wholes: it never sees an object, and does not know how a controller
// works. It never watches anything itself: others request a resync when something may have changed.
//
// Neighbours: package discovery says what a selector means; package controller is what is started and stopped;
// package reconcilers above it connects them.
package orchestration
