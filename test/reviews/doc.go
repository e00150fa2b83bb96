// Package reviews attacks a whole operator with large admission reviews, many at once, and measures its memory.
//
// It stands apart because the memory of a review is the sum of the memory of many packages: the server that reads it,
// the decoders, the copies for handlers, the comparison and the patch. It never asserts absolute times.
//
// Neighbours: webhooks/internal/server bounds the memory, and its tests show the order of reviews on virtual time.
package reviews
