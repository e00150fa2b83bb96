// Not part of the public API.
//
// Package discoverytest has API servers that answer to questions of discovery only, for tests.
//
// It is apart because the tests of several packages ask the same questions. It never watches and has no objects.
//
// Neighbours: facade/facadetest/memapi is a whole API server; this is for what a whole one never says.
package discoverytest
