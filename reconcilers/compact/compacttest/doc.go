// Not part of the public API.
//
// Package compacttest makes the objects of package compact for tests.
//
// It is apart because no product code may import it. It never makes an object that package compact would not.
package compacttest
