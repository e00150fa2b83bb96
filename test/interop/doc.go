// Package interop hands objects from genuine Kopf to an operator of ours, and back, on one real API server.
//
// It is apart because it needs Python and the package index besides the control plane. It compares with Kopf's real
// behaviour: no handler may run again for what the other one has done, and nothing may be written to an object without
// work. In a takeover, all objects are idle or wait for a retry when the one stops and the other starts. In a relay,
// each object is a row of a table, and the two are killed in turns in the middle of its changes, its deletion, or its
// daemon's life: all rows of a table go through the same four lives at once, so a row costs next to nothing. Reviews of
// admission need no control plane: both sides answer the same random ones. People who freeze operators do so by the
// commands of both, and operators of both pause for one another.
//
// Neighbours: test/e2e is the same control plane with our operators alone; the vectors are Kopf's rules one by one.
package interop
