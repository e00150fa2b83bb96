// Package discoverytest provides fake API servers that only answer discovery requests, for the tests of several
// packages. [NewZoo] and [ServedResources] are ready-made ones.
//
// They have no objects and cannot be watched. For a complete API server, use facade/facadetest/memapi; these fakes also
// give answers that a complete one never gives.
package discoverytest
