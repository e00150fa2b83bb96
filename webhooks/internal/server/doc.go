// Not part of the public API.
//
// Package server serves the admission reviews of one operator over HTTP.
//
// [New] returns a [Server] for the paths of the handlers. [Server.Register] adds it to a webhook server of
// controller-runtime, which has the port and the certificate. The package limits the size and the time of requests, and
// the memory of all requests together, because clients are not trusted. It decides which HTTP status a request gets
// that is not a review.
//
// It does not decode reviews. Package webhooks/review answers them, webhooks/configurations writes the paths to the
// cluster, and webhooks/certificates provides the certificates.
package server
