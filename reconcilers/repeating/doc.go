// Package repeating repeats requests to the API server that failed for now.
//
// It is apart because this is about requests, not objects: what the object waits for when a pass has failed is decided
// above, without a worker being held up. It never repeats what the server has refused for good, and gives up with the
// request's context.
//
// Neighbours: package reconcilers puts the transport under its own client, if the operator's settings ask for it.
package repeating
