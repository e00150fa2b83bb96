// Package interop hands objects from genuine Kopf to an operator of ours, and back, on one real API server.
//
// It is apart because it needs Python and the package index besides the control plane. What it finds is not what we think that
// Kopf does, but what Kopf does: no handler may run again for what the other one has done, and nothing may be written to an
// object of which nothing is to be done.
//
// Neighbours: test/e2e is the same control plane with our operators alone; the vectors are Kopf's rules one by one.
package interop
